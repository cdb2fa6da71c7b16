package zklatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Latch opens when a number of events has been counted, wherever they were, and stays
// open: j.u.c.'s CountDownLatch for many machines. Like that one it cannot be closed again: use a new path, and
// remove the old one with everything below it. It is safe for use by many goroutines.
//
// An event costs one request, the last one another, which opens the latch. Waiting costs two. An object that has found
// the latch open asks nobody any more; to find that out takes two requests more. Only the first use of a path ever
// takes a few more, to create it.
type Latch struct {
	path      string
	total     int
	ephemeral bool
	at        *session.Access
	plain     atomic.Bool // we may not write to the directory of the counts
	misuse    error
	terms     record.Terms[terms]
	founded   atomic.Int64 // the czxid of the base node, 0 if nobody has looked
	opened    atomic.Bool  // it was found open

	mu   sync.Mutex
	done chan struct{} // of the wait for all calls of Done, while there is one
}

// terms is the data of the base node. Below it there are
//
//	closed-of-3     until the latch opens. It has the total in its name, so that nobody has to read that before he counts
//	counts          with one node for each event
type terms struct {
	Total int `json:"total"`
}

// option is one that only New takes.
type option struct {
	zksync.Option
	set func(*Latch)
}

// Ephemeral has counts end with the session of whoever counted, as long as the latch has
// not opened. By default a count stays, whatever becomes of the process. A CountDown whose session is lost on the way
// may have to wait until the servers have ended that session.
func Ephemeral() zksync.Option {
	return option{session.Misplaced("Ephemeral"), func(l *Latch) { l.ephemeral = true }}
}

// New names a latch of total events by a path of its own, which is created when first
// needed. The first who uses it stores total there; everybody else must say the same, else
// the first call fails with zksync.ErrMisuse. It does no I/O. A malformed path, a total
// below 1, or a nil session is reported by the first call as zksync.ErrMisuse.
func New(s *zksync.Session, path string, total int, opts ...zksync.Option) *Latch {
	own, rest := session.Own[option](opts)
	l := &Latch{path: path, total: total, at: session.NewAccess((*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		o.set(l)
	}
	l.misuse = l.at.Misuse()
	if l.misuse == nil && total < 1 {
		l.misuse = fmt.Errorf("%w: a latch of %d events; it needs one at least", zksync.ErrMisuse, total)
	}
	if l.misuse == nil {
		l.terms.Base, l.terms.ACL, l.terms.Keys = l.at.Full(path), l.at.ACL(), []string{"total"}
		l.terms.First = func() (terms, []string) { return terms{total}, []string{l.counts(), l.closed()} }
		l.terms.Check = l.check
	}
	return l
}

// check refuses a base node that is not that of such a latch.
func (l *Latch) check(t terms, ours bool) error {
	switch {
	case !ours || t.Total < 1:
		return fmt.Errorf("%w: the base node is not that of a latch; use a path of its own", zksync.ErrMisuse)
	case t.Total != l.total:
		return fmt.Errorf("%w: the latch is one of %d events, not %d; use the same number everywhere",
			zksync.ErrMisuse, t.Total, l.total)
	}
	return nil
}

func (l *Latch) counts() string { return l.terms.Base + "/counts" }
func (l *Latch) closed() string { return fmt.Sprintf("%s/closed-of-%d", l.terms.Base, l.total) }

func (l *Latch) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	if l.misuse != nil {
		return errs.Wrap(op, l.path, l.misuse)
	}
	if l.opened.Load() {
		f = func(context.Context, *zkconn.Epoch) error { return nil }
	}
	return errs.Wrap(op, l.path, l.at.In(ctx, f))
}

// CountDown counts one event, once, whatever happens to the connection. It does not wait
// for others. Counting on when the latch is open is harmless, and leaves nothing behind. It
// blocks until the servers confirm it; it fails when ctx ends (the error wraps the context's,
// and the event may have been counted) or the session is closed (zksync.ErrClosed).
func (l *Latch) CountDown(ctx context.Context) error {
	event := newEvent()
	return l.in(ctx, "count-down", func(ctx context.Context, e *zkconn.Epoch) error {
		return l.countDown(ctx, e, event)
	})
}

// newEvent names the node of an event. It has no sequence number, so that it is one event however often it is asked for,
// and in however many sessions.
func newEvent() string { return node.Prefix(node.NewUUID()) + "-count" }

// countDown counts the event, unless the latch is open, and opens it if that was the last.
func (l *Latch) countDown(ctx context.Context, e *zkconn.Epoch, event string) error {
	for pace := (node.Pace{Free: 1}); ; {
		before := l.founded.Load()
		n, err := l.count(ctx, e, event)
		switch {
		case err == nil && n >= l.total:
			return l.open(ctx, e)
		case record.RefusedAt(err, 0, zk.ErrNoNode): // it is open, or nobody has used it
			if open, err := l.isOpen(ctx, e, before); open || err != nil {
				return err
			}
		case record.RefusedAt(err, 1, zk.ErrNoNode): // removed by hand
			if err := node.MakeDir(ctx, e, l.counts(), l.at.ACL()); err != nil {
				return err
			}
		case record.RefusedAt(err, 2, zk.ErrNoAuth) && !l.plain.Swap(true), errors.Is(err, record.ErrAgain):
		default:
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// count makes the node of the event while the latch is closed, and tells how many there are.
func (l *Latch) count(ctx context.Context, e *zkconn.Epoch, event string) (n int, err error) {
	var flags int32
	if l.ephemeral {
		flags = zk.FlagEphemeral
	}
	path := l.counts() + "/" + event
	ops := []any{
		&zk.CheckVersionRequest{Path: l.closed(), Version: -1},
		&zk.CreateRequest{Path: path, Data: l.at.Owner(), Acl: l.at.ACL(), Flags: flags},
		&zk.SetDataRequest{Path: l.counts(), Version: -1}, // tells how many there are
	}
	if l.plain.Load() {
		ops = ops[:2]
	}
	res, err := record.Transact(ctx, e, ops...)
	if err == nil && len(res) > 2 && res[2].Stat != nil && e.Ordered() {
		return int(res[2].Stat.NumChildren), nil
	}
	if err != nil && !record.RefusedAt(err, 1, zk.ErrNodeExists) {
		return 0, err
	}
	if l.ephemeral {
		// One of another session goes with its session, and nobody removes it before: a delete that is applied late
		// would also remove the next node of that name, which is to stay.
		st, there, err := e.Exists(ctx, path)
		if err != nil {
			return 0, err
		}
		if !there || st.EphemeralOwner != e.ID() {
			return 0, record.ErrAgain
		}
	}
	return l.counted(ctx, e)
}

// counted is how many events have been counted.
func (l *Latch) counted(ctx context.Context, e *zkconn.Epoch) (int, error) {
	dir, there, err := e.Exists(ctx, l.counts())
	if err != nil || !there {
		return 0, err
	}
	return int(dir.NumChildren), nil
}

// open opens the latch; more than one may.
func (l *Latch) open(ctx context.Context, e *zkconn.Epoch) error {
	if err := e.Delete(ctx, l.closed()); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	l.opened.Store(true)
	return nil
}

// isOpen is asked after it was found that there is no node that says that the latch is closed. It is open if it existed
// before that look: if the base node is the one that was known then.
func (l *Latch) isOpen(ctx context.Context, e *zkconn.Epoch, before int64) (bool, error) {
	v, err := l.terms.Read(ctx, e)
	if err != nil || v.New {
		return false, err
	}
	l.founded.Store(v.Founded)
	if v.Founded == before {
		l.opened.Store(true)
	}
	return v.Founded == before, nil
}

// Wait returns when the latch is open. It waits through disconnects and lost sessions, and
// fails when ctx ends (the error wraps the context's) or the session is closed (zksync.ErrClosed).
//
// Whoever counts the last event opens the latch with another request. If it dies in
// between, those who wait find out within a session timeout.
func (l *Latch) Wait(ctx context.Context) error {
	return l.in(ctx, "wait", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, l.terms.Base); err != nil {
			return err
		}
		for {
			before := l.founded.Load()
			was, err := record.UntilGone(ctx, e, l.closed(), func() error { return l.openIfDone(ctx, e) })
			if err != nil {
				return err
			}
			if was {
				l.opened.Store(true)
				return nil
			}
			if open, err := l.isOpen(ctx, e, before); open || err != nil {
				return err
			}
		}
	})
}

// openIfDone opens the latch if all events have been counted.
func (l *Latch) openIfDone(ctx context.Context, e *zkconn.Epoch) error {
	n, err := l.counted(ctx, e)
	if err != nil || n < l.total {
		return err
	}
	return l.open(ctx, e)
}

// Done is closed when the latch has opened. It stays open when the session is closed. All calls share one wait, and one
// channel, until that ends.
func (l *Latch) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done != nil {
		return l.done
	}
	done := make(chan struct{})
	begun := l.at.Spawn(func() {
		err := l.Wait(context.Background())
		if err == nil {
			close(done)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.done = nil // another wait may end otherwise
	})
	if begun {
		l.done = done
	}
	return done
}

// Count is how many events are still to come; 0 if the latch is open. It is what the leader of
// the servers knew at some instant of the call.
func (l *Latch) Count(ctx context.Context) (remaining int, err error) {
	err = l.in(ctx, "count", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, l.terms.Base); err != nil {
			return err
		}
		for {
			before := l.founded.Load()
			_, closed, err := e.Exists(ctx, l.closed())
			if err != nil {
				return err
			}
			if closed {
				n, err := l.counted(ctx, e)
				remaining = max(l.total-n, 0)
				return err
			}
			if open, err := l.isOpen(ctx, e, before); open || err != nil {
				return err
			}
		}
	})
	return remaining, err
}
