package bench

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// goZKLock is go-zookeeper's own lock on plain connections.
var goZKLock = NewPeer("gozk-lock", map[string]Opener{
	Uncontended: lockEach, Async: lockEach, Contended: lockEach, Relock: lockEach, Local: lockShared, Deep: lockShared,
})

// floor does the two writes that no lock on ZooKeeper can do without, the creation
// and the deletion of an ephemeral sequential node, and waits for nobody.
var floor = NewPeer("floor", map[string]Opener{Uncontended: createEach, Async: createEach, Contended: createEach})

var lockEach = Exclusive(func(ctx context.Context, at Site) (*Crew, error) {
	return PlainCrew(ctx, at, at.Clients, at.Clients, newLock)
})

// lockShared gives every client a lock of its own, because one zk.Lock cannot be used by several goroutines.
var lockShared = Exclusive(func(ctx context.Context, at Site) (*Crew, error) {
	if at.Scenario.Name == Deep {
		return PlainCrew(ctx, at, deepSessions(at.Clients), at.Clients+1, newLock)
	}
	return PlainCrew(ctx, at, 1, at.Clients, newLock)
})

func createEach(ctx context.Context, at Site) (*Crew, error) {
	return PlainCrew(ctx, at, at.Clients, at.Clients, func(c *zk.Conn, path string, acl []zk.ACL) Locker {
		return &creator{conn: c, prefix: path + "/floor-", acl: acl}
	})
}

// deepSessions is over how many sessions n waiters are spread.
func deepSessions(n int) int { return min(n, 10) }

// PlainCrew opens sessions of the plain client library, over which it spreads lockers. It serves the scenarios in which each
// client has a session, and those in which clients share some: then there are fewer sessions than lockers.
func PlainCrew(ctx context.Context, at Site, sessions, lockers int, locker func(c *zk.Conn, path string, acl []zk.ACL) Locker) (*Crew, error) {
	conns, err := openAll(sessions, func() (*plainConn, error) { return dialPlain(ctx, at) }, (*plainConn).close)
	if err != nil {
		return nil, err
	}
	crew := &Crew{Close: func() { closeAll(conns, (*plainConn).close) }}
	_, root := splitServers(at.Servers)
	for i := range lockers {
		crew.Lockers = append(crew.Lockers, locker(conns[i%sessions].conn, root+at.Path, at.Secured.acl()))
	}
	if at.Scenario.Name == Deep {
		err = crew.countChildren(ctx, at)
	}
	return crew, err
}

// countChildren sets Queued for clients whose nodes are the children of the slice's path. With an error it closes the crew.
func (c *Crew) countChildren(ctx context.Context, at Site) error {
	at.Meter = &Meter{} // the count is not the peer's
	conn, err := dialPlain(ctx, at)
	if err != nil {
		c.Close()
		return err
	}
	_, root := splitServers(at.Servers)
	c.Queued = func() (int, error) {
		_, stat, err := conn.conn.Exists(root + at.Path)
		if err != nil {
			return 0, err
		}
		return int(stat.NumChildren), nil
	}
	closeClients := c.Close
	c.Close = func() { conn.close(); closeClients() }
	return nil
}

type zkLock struct{ lock *zk.Lock }

func newLock(c *zk.Conn, path string, acl []zk.ACL) Locker { return zkLock{zk.NewLock(c, path, acl)} }

func (l zkLock) Acquire(context.Context) error { return l.lock.Lock() }

func (l zkLock) Release() error { return l.lock.Unlock() }

type creator struct {
	conn   *zk.Conn
	prefix string
	acl    []zk.ACL
	node   string
}

func (c *creator) Acquire(context.Context) (err error) {
	c.node, err = c.conn.Create(c.prefix, nil, zk.FlagEphemeral|zk.FlagSequence, c.acl)
	return err
}

func (c *creator) Release() error { return c.conn.Delete(c.node, -1) }
