package zklatch

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Gate is open or closed, also when the process that closed it has ended. A gate that was never closed is
// open. For example, batch jobs may wait at it while a database is moved.
type Gate struct {
	at *session.Access
}

// NewGate names a gate.
func NewGate(s *zksync.Session, path string, opts ...zksync.Option) *Gate {
	return &Gate{session.NewAccess("zklatch", (*session.Session)(s), path, opts).Without(session.OfHolds...).Of(layout.Gate)}
}

// made is g, which NewGate has made. It panics with a zero or nil value.
func (g *Gate) made() *Gate {
	if g == nil || g.at == nil {
		panic(errs.Unmade("zklatch", "a Gate", "NewGate"))
	}
	return g
}

func (g *Gate) run(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	return g.made().at.Run(ctx, op, f)
}

// dir is the directory of the gate.
func (g *Gate) dir() string { return g.at.Full(g.at.Path) }

// node exists while the gate is closed. Waiters watch its deletion, not the creation of a node that would exist while
// the gate is open: a watch of a node that may never come would stay on the servers for ever.
func (g *Gate) node() string { return g.dir() + "/closed" }

// Close closes the gate. A request whose answer is lost is sent again, so until Close returns it may close a
// gate that was opened meanwhile; docs/guarantees/meeting.md has the one case in which that happens later.
func (g *Gate) Close(ctx context.Context) error {
	return g.run(ctx, "close", func(ctx context.Context, e *zkconn.Epoch) error {
		missing := false
		return record.Insist(ctx, e, func() error {
			if missing { // created after the pause: until there is the node, the directory is empty and may be removed
				if err := node.MakeDir(ctx, e, g.dir(), g.at.ACL()); err != nil {
					return err
				}
			}
			_, err := node.RepeatChange(ctx, e, &zk.CreateRequest{Path: g.node(), Data: g.at.Owner(), Acl: g.at.ACL()})
			missing = errors.Is(err, zk.ErrNoNode)
			switch {
			case errors.Is(err, zk.ErrNodeExists):
				return nil
			case missing:
				return node.ErrAgain
			}
			return err
		})
	})
}

// Open opens the gate, and all waiters continue. It never undoes a later Close, also if its requests are lost
// or delayed.
func (g *Gate) Open(ctx context.Context) error {
	// In a later session marked shows which node was to be deleted: its czxid is at most marked. 0 means that none was.
	marked := int64(0)
	return g.run(ctx, "open", func(ctx context.Context, e *zkconn.Epoch) error {
		// The session of the mark has ended. Either the node was deleted, or only the mark went with its session. A
		// newer node is of a later Close, which must stay.
		if marked != 0 {
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
		// The marked node was there when the mark was made, so its czxid is at most the newest zxid that this session
		// knows now. A node of a Close after the delete is newer.
		marked = e.Seen()
		return record.DeleteMarked(ctx, e, g.node(), id)
	})
}

// closedAt is the zxid of the Close that closed the gate, 0 if the gate is open.
func (g *Gate) closedAt(ctx context.Context, e *zkconn.Epoch) (int64, error) {
	if err := record.Synced(ctx, e, g.dir()); err != nil {
		return 0, err
	}
	st, closed, err := e.Exists(ctx, g.node())
	if err != nil || !closed {
		return 0, err
	}
	return st.Czxid, nil
}

// Wait returns when the gate is open, or was opened meanwhile.
func (g *Gate) Wait(ctx context.Context) error {
	began := int64(0) // if the node is newer than this, the gate has been open since Wait began
	return g.run(ctx, "wait", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, g.dir()); err != nil {
			return err
		}
		if began == 0 {
			began = e.Seen()
		}
		return record.UntilGone(ctx, e, g.node(), began, nil)
	})
}

// IsClosed reports whether the gate is closed.
func (g *Gate) IsClosed(ctx context.Context) (closed bool, err error) {
	err = g.run(ctx, "is-closed", func(ctx context.Context, e *zkconn.Epoch) error {
		at, err := g.closedAt(ctx, e)
		closed = at != 0
		return err
	})
	return closed, err
}
