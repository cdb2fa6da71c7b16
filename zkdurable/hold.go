package zkdurable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"
)

// Hold is a hold that this process has open, also in the next ZooKeeper session, until another process of the
// owner resumes it.
type Hold struct {
	m      *Mutex
	id     string
	held   held   // as it was granted or resumed; the note may have changed
	before *ended // the hold before
	over   chan struct{}
	keep   context.CancelFunc // ends the goroutine that keeps it open

	busy    *semaphore.Weighted // guards the two fields below, also while requests are on their way
	version int32               // of the hold's node, if no other process has opened it
	opened  *zkconn.Epoch       // in which this Hold has opened it; nil if that is not known

	unlocking atomic.Bool // a request of an Unlock was sent, and no Unlock has returned nil
	sending   atomic.Bool // sendOn runs
	mu        sync.Mutex
	err       error  // nil while it lasts
	by, why   string // of the Break that has ended it, or the hold before
}

// newHold makes the Hold of a hold whose node has this version, and which was opened in the session opened; nil if that has
// ended.
func (m *Mutex) newHold(id string, x held, before *ended, version int32, opened *zkconn.Epoch) (*Hold, error) {
	ctx, keep := context.WithCancel(context.Background())
	h := &Hold{m: m, id: id, held: x, before: before, over: make(chan struct{}), keep: keep,
		busy: semaphore.NewWeighted(1), version: version, opened: opened}
	if before != nil {
		h.by, h.why = before.By, before.Why
	}
	if !m.at.Spawn(func() { h.keepOpen(ctx) }) {
		keep()
		return nil, errs.MarkAmbiguous(zksync.ErrClosed) // the hold lasts, and no caller knows of it
	}
	return h, nil
}

// Token is the fencing token, the same in all processes that resume the hold.
func (h *Hold) Token() zksync.Token { return zksync.Token(h.held.Token) }

func (h *Hold) Owner() string { return h.held.Owner }

// Done is closed when this Hold has ended: see [Hold.Err]. Without a connection that is noticed afterwards.
func (h *Hold) Done() <-chan struct{} { return h.over }

// Err is nil while this Hold lasts. Then it is zksync.ErrReleased after Unlock, zksync.ErrLost if the hold
// was broken or resumed by another process, and zksync.ErrClosed if the session was closed: then the owner
// still holds.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Broken returns which process has broken this hold, or else the one before, and why. Both are empty if
// neither was broken.
func (h *Hold) Broken() (by, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by, h.why
}

// SetNote replaces the note that [Mutex.Holder] shows, for example how far the work has come. If the hold has
// ended, the error is [Hold.Err]. A note has at most 64 KB of UTF-8.
func (h *Hold) SetNote(ctx context.Context, note string) error {
	if err := valid("note", note, 0, maxText); err != nil {
		return h.m.at.Named("set-note", err)
	}
	return h.change(ctx, "set-note", func(ctx context.Context, e *zkconn.Epoch, doubt *bool) error {
		next := h.held
		next.Note = note
		return h.m.apply(ctx, e, doubt,
			&zk.CheckVersionRequest{Path: h.m.holdNode(next.Token), Version: h.version},
			// only this Hold writes there while its node has that version
			&zk.SetDataRequest{Path: h.m.terms.Base, Data: record.Encode(state{Hold: &next, Before: h.before}), Version: -1})
	})
}

// Unlock ends the hold. If the error is [zksync.Ambiguous], the session carries it out, and [Hold.Done]
// reports when. Other errors are those of [Hold.Err].
func (h *Hold) Unlock(ctx context.Context) error {
	err := h.unlock(ctx)
	switch {
	case err == nil:
		h.unlocking.Store(false)
	case errors.Is(h.Err(), zksync.ErrReleased) && h.unlocking.Swap(false): // err may also have the cause of ctx, which says nothing
		return nil
	case errs.Ambiguous(err) && h.Err() == nil && !h.sending.Swap(true):
		// Otherwise this Hold would stay open, so that no process could resume it, and wait for a call that may never come.
		h.m.at.Spawn(h.sendOn)
	}
	return err
}

// sendOn carries out an Unlock whose outcome is not known.
func (h *Hold) sendOn() {
	defer h.sending.Store(false)
	err := h.unlock(context.Background())
	if err != nil && h.Err() == nil && !h.m.at.Closing() {
		h.m.at.Log().Once("unlock", h.m.at.Path).Warn("cannot unlock, call Unlock again", "path", h.m.at.Path, "owner", h.held.Owner, "error", err)
	}
}

// unlock is Unlock, but it does not know whether another call has ended the hold.
func (h *Hold) unlock(ctx context.Context) error {
	return h.change(ctx, "unlock", func(ctx context.Context, e *zkconn.Epoch, doubt *bool) error {
		h.unlocking.Store(true)
		err := h.m.free(ctx, e, h.held.Token, h.version, &ended{Token: h.held.Token, Owner: h.held.Owner, ID: h.id}, doubt)
		if err == nil {
			h.finish(zksync.ErrReleased, nil)
		}
		return err
	})
}

// change runs f, which makes a change at h.version, until its outcome is known. After a refusal it calls f again, unless the hold
// has ended.
func (h *Hold) change(ctx context.Context, op string, f func(ctx context.Context, e *zkconn.Epoch, doubt *bool) error) error {
	doubt := false
	err := h.m.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := h.busy.Acquire(ctx, 1); err != nil {
			return err
		}
		defer h.busy.Release(1)
		for pace := (node.Pace{Free: 1}); ; {
			if err := h.Err(); err != nil {
				// How the hold has ended shows what became of an Unlock, but not of a note.
				doubt = doubt && (op != "unlock" || errors.Is(err, errLongAgo))
				return err
			}
			err := f(ctx, e, &doubt)
			if !record.Conflict(err) && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			if err := h.look(ctx, e); err != nil {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	return h.m.at.Named(op, errs.InDoubt(err, doubt))
}

// errLongAgo means that the base node does not mention the hold any more.
var errLongAgo = fmt.Errorf("%w: others have held since", zksync.ErrLost)

// look finds out what has become of the hold. Afterwards h.version is right, or h has ended. busy is held.
func (h *Hold) look(ctx context.Context, e *zkconn.Epoch) error {
	m := h.m
	if err := record.Synced(ctx, e, m.terms.Base); err != nil {
		return err
	}
	data, st, err := e.Get(ctx, m.holdNode(h.held.Token))
	switch {
	case errors.Is(err, zk.ErrNoNode):
	case err != nil:
		return err
	case node.Decode(data).ID == h.id:
		h.version = st.Version
		return nil
	default:
		h.finish(fmt.Errorf("%w: another process of %s has resumed the hold", zksync.ErrLost, errs.Quote(h.held.Owner)), nil)
		return nil
	}
	v, _, err := m.terms.Peek(ctx, e)
	if err != nil {
		return err
	}
	switch x := v.T.Before; {
	case v.T.is(h.held.Token):
		err = fmt.Errorf("%w: another program has removed the node of the hold", zksync.ErrLost)
	case x == nil || x.Token != h.held.Token:
		err = errLongAgo
	case x.ID == h.id:
		err = zksync.ErrReleased
	case x.By == "":
		err = fmt.Errorf("%w: another process of %s has resumed and released the hold", zksync.ErrLost, errs.Quote(h.held.Owner))
	default:
		err = fmt.Errorf("%w: broken by %s: %s", zksync.ErrLost, x.By, x.Why)
	}
	// No process opens a hold that has ended. So if open-<token> exists, this Hold has made it.
	e.Reap(zkconn.Orphan{Dir: m.terms.Base, Node: m.openNode(h.held.Token)})
	h.finish(err, v.T.Before)
	return nil
}

// finish ends h with err. x is the hold that has ended last; nil if that is not known.
func (h *Hold) finish(err error, x *ended) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	if h.err = err; x != nil && x.Token == h.held.Token && x.By != "" {
		h.by, h.why = x.By, x.Why
	}
	close(h.over)
	h.keep()
}

// keepOpen keeps the hold open in each session, until it ends.
func (h *Hold) keepOpen(ctx context.Context) {
	for pace := (node.Pace{}); h.Err() == nil; {
		err := h.m.at.Run(ctx, "", h.keepIn, session.Joined)
		switch {
		case errors.Is(err, zksync.ErrClosed):
			h.finish(zksync.ErrClosed, nil)
		case err != nil && ctx.Err() == nil:
			// The servers refuse, for example because the access control list was changed.
			h.m.at.Log().Once("keep open", h.m.at.Path).Warn("cannot keep a hold open, trying again", "path", h.m.at.Path, "owner", h.held.Owner, "error", err)
			_ = pace.Rest(ctx, nil)
		}
	}
}

// keepIn is keepOpen in one session. It returns nil when h has ended.
func (h *Hold) keepIn(ctx context.Context, e *zkconn.Epoch) error {
	for changed, pace := false, (node.Pace{Free: 1}); ; changed = true {
		old, err := h.open(ctx, e, changed)
		if err != nil || h.Err() != nil {
			return err
		}
		gone := h.m.holdNode(h.held.Token)
		if old {
			gone = h.m.openNode(h.held.Token) // the servers remove it
		}
		if err := record.UntilGone(ctx, e, gone, 0, nil); err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// open opens the hold in e, unless it is open there or has ended. changed means that a node is gone, so open first finds out what
// has become of the hold. old means that the node of an earlier session of this process is in the way.
func (h *Hold) open(ctx context.Context, e *zkconn.Epoch, changed bool) (old bool, err error) {
	if err := h.busy.Acquire(ctx, 1); err != nil {
		return false, err
	}
	defer h.busy.Release(1)
	for pace := (node.Pace{Free: 1}); h.Err() == nil && (changed || h.opened != e); {
		if changed {
			err = h.look(ctx, e)
		} else if err = h.m.openAs(ctx, e, h.held.Token, h.id, h.version, new(bool)); err == nil {
			h.version = zkconn.NextVersion(h.version)
			h.opened = e
		}
		if record.RefusedAt(err, 1, zk.ErrNodeExists) {
			// The version is that of this Hold, so no other process has opened the hold since.
			st, there, err := e.Exists(ctx, h.m.openNode(h.held.Token))
			if err != nil || there && st.EphemeralOwner != e.ID() {
				return there, err
			}
			if there { // else it has ended with an earlier session just now, and the next attempt makes it
				h.opened = e
			}
		}
		if changed = record.Conflict(err) || errors.Is(err, zk.ErrNoNode); err != nil && !changed {
			return false, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return false, err
		}
	}
	return false, nil
}
