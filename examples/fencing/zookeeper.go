package fencing

import (
	"context"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
)

// Node is a node of ZooKeeper, on the servers of the lock.
type Node struct {
	Session *zksync.Session
	Path    string
}

// Claim implements Store. It only reads: the servers refuse an earlier holder from the moment of the grant on.
func (n Node) Claim(ctx context.Context, l *zksync.Lease) (pieces int, err error) {
	conn := n.Session.Conn()
	if conn == nil {
		return 0, refused(l) // no session: it is lost, and its leases with it
	}
	data, _, err := conn.Get(n.Path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(data))
}

// Write implements Store. The error is zksync.ErrLost for a holder that is none any more.
func (n Node) Write(ctx context.Context, l *zksync.Lease, pieces int) error {
	_, err := l.Guard(ctx, &zk.SetDataRequest{Path: n.Path, Data: []byte(strconv.Itoa(pieces)), Version: -1})
	return err
}
