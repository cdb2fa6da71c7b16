package bench

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// goZKLock is go-zookeeper's own lock on plain connections.
var goZKLock = NewPeer("gozk-lock", map[string]Opener{
	Uncontended: plainLocks, Async: plainLocks, Contended: plainLocks, Relock: plainLocks, Local: plainLocks, Deep: plainLocks, Crowd: plainLocks, Fleet: plainLocks,
	Many: plainMany(newLock),
})

var plainLocks = Exclusive(Plain(newLock))

// Plain gives each client a locker of its own, because one zk.Lock cannot be used by several goroutines. The sessions are
// those of the plain client library: each client has one, in the scenario Local all have one, and in Deep and Crowd all have ten.
func Plain(locker func(c *zk.Conn, path string, acl []zk.ACL) Locker) Opener {
	return func(ctx context.Context, at Site) (*Crew, error) {
		sessions, lockers := at.Clients, at.Clients
		switch {
		case at.Scenario.Name == Local:
			sessions = 1
		case at.Scenario.Drains:
			sessions, lockers = at.deepSessions(), at.Clients+1
		}
		conns, err := openAll(sessions, func() (*plainConn, error) { return dialPlain(ctx, at) }, (*plainConn).close)
		if err != nil {
			return nil, err
		}
		crew := &Crew{Close: func() { closeAll(conns, (*plainConn).close) }}
		_, root := splitServers(at.Servers)
		for i := range lockers {
			crew.Lockers = append(crew.Lockers, locker(conns[i%sessions].conn, root+at.Path, at.Secured.acl()))
		}
		if at.Scenario.Drains {
			err = crew.countChildren(ctx, at)
		}
		return crew, err
	}
}

// deepSessions is over how many sessions the waiters and the holder are spread.
func (at Site) deepSessions() int {
	if at.Scenario.Name == Fleet {
		return at.Clients + 1
	}
	return min(at.Clients, 10)
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
