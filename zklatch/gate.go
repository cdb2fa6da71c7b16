package zklatch

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Gate is open or closed, for everybody who names the same path. One that was never closed
// is open. It stays as it is when the process that closed it ends: batch jobs may be held
// up at it, for instance while a database is being moved. It is safe for use by many goroutines.
type Gate struct {
	path string
	at   *session.Access
}

// NewGate names a gate by the path of a directory of its own, which is created when first
// needed. It does no I/O. A malformed path or a nil session is reported by the first call
// as zksync.ErrMisuse.
func NewGate(s *zksync.Session, path string, opts ...zksync.Option) *Gate {
	return &Gate{path: path, at: session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...)}
}

// Close closes the gate; closing one that is closed changes nothing. It blocks through
// disconnects until the servers confirm it, ctx ends (the error wraps the context's, and it
// is unknown whether the gate was closed), or the session is closed (zksync.ErrClosed). A request
// whose answer is lost is sent again, so until Close returns it may close what somebody has opened since Close began.
func (g *Gate) Close(ctx context.Context) error {
	return errs.Wrap("close", g.path, g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		return record.Insist(ctx, e, func() error {
			_, err := e.Create(ctx, g.node(), g.at.Owner(), 0, g.at.ACL())
			switch {
			case errors.Is(err, zk.ErrNodeExists):
				return nil
			case errors.Is(err, zk.ErrNoNode):
				if err := node.MakeDir(ctx, e, g.at.Full(g.path), g.at.ACL()); err != nil {
					return err
				}
				return record.ErrAgain
			}
			return err
		})
	}))
}

// Open opens the gate and lets everybody through who waits; opening one that is open
// changes nothing. It blocks and fails like Close. Whatever happens to its requests, it opens what was
// closed by a Close that came before, and never undoes one that came after. It costs two requests, one if the gate
// is open.
func (g *Gate) Open(ctx context.Context) error {
	marked := int64(0) // when the node that is to go was marked, in a session that is over
	return errs.Wrap("open", g.path, g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if marked != 0 { // was it deleted, or did the mark end with its session?
			now, err := g.closedAt(ctx, e)
			if err != nil || now == 0 || now > marked {
				return err
			}
		}
		id, err := record.PutMark(ctx, e, g.node(), g.at.ACL())
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		// What was there by then is older, and what is made after the delete is not.
		if marked = e.Seen(); !e.Ordered() {
			if marked, err = g.closedAt(ctx, e); err != nil {
				record.DropMark(e, g.node(), id)
				return err
			}
		}
		return record.DeleteMarked(ctx, e, g.node(), id)
	}))
}

// closedAt is the zxid of the Close that closed the gate, 0 if it is open.
func (g *Gate) closedAt(ctx context.Context, e *zkconn.Epoch) (int64, error) {
	if err := record.Synced(ctx, e, g.at.Full(g.path)); err != nil {
		return 0, err
	}
	st, closed, err := e.Exists(ctx, g.node())
	if err != nil || !closed {
		return 0, err
	}
	return st.Czxid, nil
}

// Wait returns when the gate is open: at once, or when it is opened. A gate that was
// opened and closed again in between lets those through who waited. It waits through
// disconnects and lost sessions, and fails when ctx ends (the error wraps the context's)
// or the session is closed (zksync.ErrClosed).
func (g *Gate) Wait(ctx context.Context) error {
	return errs.Wrap("wait", g.path, g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, g.at.Full(g.path)); err != nil {
			return err
		}
		return record.UntilGone(ctx, e, g.node(), nil)
	}))
}

// IsClosed reports whether the gate is closed, as the leader of the servers knew it at some
// instant of the call.
func (g *Gate) IsClosed(ctx context.Context) (closed bool, err error) {
	err = g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		at, err := g.closedAt(ctx, e)
		closed = at != 0
		return err
	})
	return closed, errs.Wrap("is-closed", g.path, err)
}

// node is there as long as the gate is closed. What waits for it watches its deletion: the
// watch of a node that may come some day would stay on the servers for ever.
func (g *Gate) node() string { return g.at.Full(g.path) + "/closed" }
