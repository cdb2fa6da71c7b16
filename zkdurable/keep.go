package zkdurable

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// keepOpen keeps the hold open in each session of its user, and waits for its end.
func (h *Hold) keepOpen(ctx context.Context) {
	for pace := (node.Pace{}); h.Err() == nil; {
		err := h.m.at.Session.In(ctx, h.keepIn)
		switch {
		case errors.Is(err, zksync.ErrClosed):
			h.finish(zksync.ErrClosed, nil)
		case err != nil && ctx.Err() == nil:
			// The servers refuse, for example because somebody has changed the access control list.
			h.m.at.Logger().Warn("cannot keep a hold open, trying again", "path", h.m.path, "owner", h.owner, "cause", err)
			_ = pace.Rest(ctx, nil)
		}
	}
}

// keepIn is keepOpen in one session. It returns nil when h has ended.
func (h *Hold) keepIn(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 1}); ; {
		if err := h.reopen(ctx, e); err != nil || h.Err() != nil {
			return err
		}
		if err := record.UntilGone(ctx, e, h.m.holdNode(h.token), 0, nil); err != nil {
			return err
		}
		// The server may lag behind the one of the session before. So this asks after a sync.
		if err := h.begin(ctx); err != nil {
			return err
		}
		err := error(nil)
		if h.Err() == nil {
			err = h.look(ctx, e)
		}
		h.end()
		if err != nil || h.Err() != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// reopen opens the hold in e, unless it is open there.
func (h *Hold) reopen(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 1}); ; {
		old, err := h.tryOpen(ctx, e)
		if err != nil || !old {
			return err
		}
		// The node is of a session of this process that has ended, as far as this process knows. The servers remove it.
		if err := record.UntilGone(ctx, e, h.m.openNode(h.token), 0, nil); err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// tryOpen opens the hold in e, if it has not ended. old says that the node of an earlier session is in the way.
func (h *Hold) tryOpen(ctx context.Context, e *zkconn.Epoch) (old bool, err error) {
	if err := h.begin(ctx); err != nil {
		return false, err
	}
	defer h.end()
	for pace := (node.Pace{Free: 1}); h.opened != e && h.Err() == nil; {
		err := h.m.openAs(ctx, e, h.token, h.id, h.version, new(bool))
		switch {
		case err == nil:
			h.version++
			h.openedIn(e)
			return false, nil
		case record.RefusedAt(err, 1, zk.ErrNodeExists):
			// The version is that of this Hold, so no other process has opened the hold since.
			st, there, err := e.Exists(ctx, h.m.openNode(h.token))
			switch {
			case err != nil:
				return false, err
			case there && st.EphemeralOwner != e.ID():
				return true, nil
			case there: // a tapped connection has kept its session
				h.openedIn(e)
				return false, nil
			}
		case record.Conflict(err), errors.Is(err, zk.ErrNoNode):
			if err := h.look(ctx, e); err != nil {
				return false, err
			}
		default:
			return false, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return false, err
		}
	}
	return false, nil
}
