package zkbarrier

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Gate is open or closed, for everybody who names the same path. One that was never set
// is open. It stays as it is when the process that set it ends: batch jobs may be held
// up at it, for instance while a database is being moved. It is safe for use by many goroutines.
type Gate struct {
	path string
	door door.Access
}

// GateOption changes a default of a [Gate]. There is none yet.
type GateOption func(*Gate)

// NewGate names a gate by the path of a directory of its own, which is created when first
// needed. It does no I/O. A malformed path or a nil session is reported by the first call
// as zksync.ErrMisuse.
func NewGate(s *zksync.Session, path string, opts ...GateOption) *Gate {
	g := &Gate{path: path, door: door.Open(s, path)}
	for _, o := range opts {
		o(g)
	}
	return g
}

// Set closes the gate; closing one that is closed changes nothing. It blocks through
// disconnects until the servers confirm it, ctx ends (the error wraps the context's, and it
// is unknown whether the gate was closed), or the session is closed (zksync.ErrClosed). A request
// whose answer is lost is sent again, so until Set returns it may close what somebody has lifted since Set began.
func (g *Gate) Set(ctx context.Context) error {
	return wrap("set", g.path, g.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		return insist(ctx, e, func() error {
			_, err := e.Create(ctx, g.node(), g.door.Owner(), 0, g.door.ACL())
			switch {
			case errors.Is(err, zk.ErrNodeExists):
				return nil
			case errors.Is(err, zk.ErrNoNode):
				if err := node.MakeDir(ctx, e, g.door.Full(g.path), g.door.ACL()); err != nil {
					return err
				}
				return errAgain
			}
			return err
		})
	}))
}

// Lift opens the gate and lets everybody through who waits; opening one that is open
// changes nothing. It blocks and fails like Set. Whatever happens to its requests, it opens what was
// closed by a Set that came before, and never undoes one that came after. It costs two requests, one if the gate
// is open.
func (g *Gate) Lift(ctx context.Context) error {
	marked := int64(0) // when the node that is to go was marked, in a session that is over
	return wrap("lift", g.path, g.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if marked != 0 { // was it deleted, or did the mark end with its session?
			now, err := g.closedAt(ctx, e)
			if err != nil || now == 0 || now > marked {
				return err
			}
		}
		id, err := putMark(ctx, e, g.node(), g.door.ACL())
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil {
			// What was there by then is older, and what is made after the delete is not.
			if marked = e.Seen(); !e.Ordered() {
				marked, err = g.closedAt(ctx, e)
			}
		}
		if err != nil {
			return err
		}
		return deleteMarked(ctx, e, g.node(), id)
	}))
}

// closedAt is the zxid of the Set that closed the gate, 0 if it is open.
func (g *Gate) closedAt(ctx context.Context, e *zkconn.Epoch) (int64, error) {
	if err := synced(ctx, e, g.door.Full(g.path)); err != nil {
		return 0, err
	}
	st, closed, err := e.Exists(ctx, g.node())
	if err != nil || !closed {
		return 0, err
	}
	return st.Czxid, nil
}

// Wait returns when the gate is open: at once, or when it is lifted. A gate that was
// lifted and set again in between lets those through who waited. It waits through
// disconnects and lost sessions, and fails when ctx ends (the error wraps the context's)
// or the session is closed (zksync.ErrClosed).
func (g *Gate) Wait(ctx context.Context) error {
	return wrap("wait", g.path, g.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if err := synced(ctx, e, g.door.Full(g.path)); err != nil {
			return err
		}
		return untilGone(ctx, e, g.node(), nil)
	}))
}

// IsSet reports whether the gate is closed, as the leader of the servers knew it at some
// instant of the call.
func (g *Gate) IsSet(ctx context.Context) (closed bool, err error) {
	err = g.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		at, err := g.closedAt(ctx, e)
		closed = at != 0
		return err
	})
	return closed, wrap("look", g.path, err)
}

// node is there as long as the gate is closed. What waits for it watches its deletion: the
// watch of a node that may come some day would stay on the servers for ever.
func (g *Gate) node() string { return g.door.Full(g.path) + "/closed" }
