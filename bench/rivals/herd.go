package main

import (
	"context"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/bench"
)

// herd is how not to do it: every waiter watches all the children of the directory, so each release wakes all, and each
// lists all. It has the same nodes as the locks.
func herd() bench.Peer {
	locks := bench.Exclusive(bench.Plain(newHerdLock))
	return bench.NewPeer("herd", map[string]bench.Opener{bench.Uncontended: locks, bench.Contended: locks, bench.Deep: locks})
}

type herdLock struct {
	conn *zk.Conn
	dir  string
	acl  []zk.ACL
	node string
}

func newHerdLock(c *zk.Conn, path string, acl []zk.ACL) bench.Locker {
	return &herdLock{conn: c, dir: path, acl: acl}
}

func (l *herdLock) Acquire(ctx context.Context) (err error) {
	l.node, err = l.conn.Create(l.dir+"/herd-", nil, zk.FlagEphemeral|zk.FlagSequence, l.acl)
	for err == nil {
		var names []string
		var changed <-chan zk.Event
		if names, _, changed, err = l.conn.ChildrenW(l.dir); err != nil {
			break
		}
		// The numbers have all the same width.
		if slices.Min(names) == path.Base(l.node) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

func (l *herdLock) Release() error { return l.conn.Delete(l.node, -1) }
