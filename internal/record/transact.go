package record

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// ErrAgain means that a request should be made again.
var ErrAgain = errors.New("again")

// Insist calls f, which makes a request that may be applied twice, until the outcome of the request is known. Before
// each call it waits for a connection. It calls f again after an answer that leaves the outcome open, after
// zkconn.ErrNotSent and after ErrAgain, with pauses, but without one after the first ErrAgain. It ends with ctx, and with the session of e (zkconn.ErrOver).
func Insist(ctx context.Context, e *zkconn.Epoch, f func() error) error {
	for lost, again := (node.Pace{}), (node.Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := f()
		if errors.Is(err, zk.ErrSessionExpired) {
			return zkconn.ErrOver
		}
		pace := &lost
		switch {
		case errors.Is(err, ErrAgain):
			pace = &again
		case !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent):
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// Transact repeats a transaction until its outcome is known. If the transaction was applied before, the servers must
// refuse it, or it must change nothing: see the package comment. [RefusedAt] tells why it was refused.
func Transact(ctx context.Context, e *zkconn.Epoch, ops ...any) (res []zk.MultiResponse, err error) {
	err = Insist(ctx, e, func() error {
		res, err = e.StartMulti(ops...).Wait(ctx, e)
		return err
	})
	return res, err
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
