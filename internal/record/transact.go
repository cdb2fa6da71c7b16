package record

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Insist calls f, which makes a request that may be applied twice, in the loop of [node.Insist].
func Insist(ctx context.Context, e *zkconn.Epoch, f func() error) error {
	r := node.Insist(ctx, e)
	for r.Next() {
		r.Err = f()
	}
	return r.Err
}

// RefusedAt reports whether the servers refused a transaction because of its
// operation at this index, for this reason.
func RefusedAt(err error, index int, reason error) bool {
	var t *zkconn.TxnError
	return errors.As(err, &t) && t.Index == index && errors.Is(t, reason)
}

// Conflict reports whether the servers refused a transaction because the nodes are not as it
// expects: something has changed meanwhile.
func Conflict(err error) bool {
	var t *zkconn.TxnError
	return errors.As(err, &t) && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) ||
		errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNotEmpty))
}

// Synced waits until the server has caught up with the leader. It is not an error if the directory does not exist.
func Synced(ctx context.Context, e *zkconn.Epoch, dir string) error {
	if err := e.Sync(ctx, dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// parent is the directory of a node on the servers.
func parent(node string) string {
	if at := strings.LastIndexByte(node, '/'); at > 0 {
		return node[:at]
	}
	return "/"
}

// MaxTransaction is the most bytes that the servers accept in one request: jute.maxbuffer, if nobody has changed it.
const MaxTransaction = 1<<20 - 1

// ACLSize is the number of bytes that an ACL takes in a request.
func ACLSize(acl []zk.ACL) int {
	size := 4
	for _, a := range acl {
		size += 4 + 4 + len(a.Scheme) + 4 + len(a.ID)
	}
	return size
}
