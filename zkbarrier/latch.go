package zkbarrier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/enter"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Latch opens when a number of events has been counted, wherever they were, and stays
// open until a Reset: j.u.c.'s CountDownLatch for many machines. It is safe for use by
// many goroutines.
type Latch struct {
	path      string
	total     int
	ephemeral bool
	door      door.Access
	plain     atomic.Bool
	misuse    error
}

// LatchOption changes a default of a [Latch].
type LatchOption func(*Latch)

// Ephemeral has counts end with the session of whoever counted, as long as the latch has
// not opened. By default a count stays, whatever becomes of the process.
func Ephemeral() LatchOption { return func(l *Latch) { l.ephemeral = true } }

// NewLatch names a latch of total events by a path of its own, which is created when first
// needed. The first who uses it stores total there; everybody else must say the same, else
// the first call fails with zksync.ErrMisuse. It does no I/O. A malformed path, a total
// below 1, or a nil session is reported by the first call as zksync.ErrMisuse.
func NewLatch(s *zksync.Session, path string, total int, opts ...LatchOption) *Latch {
	l := &Latch{path: path, total: total, door: door.Open(s, path)}
	for _, o := range opts {
		o(l)
	}
	if total < 1 {
		l.misuse = fmt.Errorf("%w: a latch of %d events; it needs one at least", zksync.ErrMisuse, total)
	}
	return l
}

// in runs f with what is stored of the latch.
func (l *Latch) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch, state) error) error {
	if l.misuse != nil {
		return wrap(op, l.path, l.misuse)
	}
	return wrap(op, l.path, l.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		st, err := l.learn(ctx, e)
		if err != nil {
			return err
		}
		return f(ctx, e, st)
	}))
}

// CountDown counts one event, once, whatever happens to the connection. It does not wait
// for others. Counting on when the latch is open is harmless. It blocks for three requests,
// five if it is the last, until the servers confirm them; it fails when ctx ends (the error wraps the context's,
// and the event may have been counted) or the session is closed (zksync.ErrClosed).
func (l *Latch) CountDown(ctx context.Context) error {
	attempt := enter.NewUUID() // finds the count in whichever session it was made
	tried := false
	return l.in(ctx, "count-down", func(ctx context.Context, e *zkconn.Epoch, st state) error {
		for {
			counted, err := l.count(ctx, e, &st, attempt, tried)
			tried = true
			var refused *enter.Refused
			if errors.As(err, &refused) { // a Reset came in between
				if st, err = l.learn(ctx, e); err != nil {
					return err
				}
				continue
			}
			if err != nil || counted < l.total {
				return err
			}
			return l.openIfDone(ctx, e, st)
		}
	})
}

// count makes the node of one event and returns how many there are.
func (l *Latch) count(ctx context.Context, e *zkconn.Epoch, st *state, attempt string, again bool) (int, error) {
	dir := l.counts(st.Generation)
	if again {
		names, err := l.names(ctx, e, dir)
		if err != nil {
			return 0, err
		}
		for _, n := range names {
			if strings.Contains(n, attempt) {
				return len(names), nil
			}
		}
	}
	flags := int32(zk.FlagSequence)
	if l.ephemeral {
		flags |= zk.FlagEphemeral
	}
	n, err := enter.Make(ctx, e, enter.Spec{
		Dir: dir, ACL: l.door.ACL(), Flags: flags, Plain: &l.plain,
		Name:   func(uuid string) string { return enter.Prefix(uuid) + "-count-" + attempt + "-" },
		Data:   l.door.Owner,
		Before: func() []any { return []any{&zk.CheckVersionRequest{Path: l.base(), Version: st.version}} },
	})
	if err != nil {
		return 0, err
	}
	if n.Dir != nil {
		return int(n.Dir.NumChildren), nil
	}
	names, err := l.names(ctx, e, dir)
	return len(names), err
}

// names lists the counts as the leader of the servers knows them.
func (l *Latch) names(ctx context.Context, e *zkconn.Epoch, dir string) ([]string, error) {
	if err := synced(ctx, e, l.base()); err != nil {
		return nil, err
	}
	names, _, err := e.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// events is how many events the nodes stand for: a request that arrived twice made two of
// one event.
func events(names []string) int {
	seen := make(map[string]bool)
	for _, n := range names {
		_, attempt, _ := strings.Cut(n, "-count-")
		seen[attempt[:max(len(attempt)-len("0000000000"), 0)]] = true
	}
	return len(seen)
}

// openIfDone opens the latch if all events have been counted; more than one may.
func (l *Latch) openIfDone(ctx context.Context, e *zkconn.Epoch, st state) error {
	names, err := l.names(ctx, e, l.counts(st.Generation))
	if err != nil || events(names) < l.total {
		return err
	}
	if err := e.Delete(ctx, l.closed(st.Generation)); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// Wait returns when the latch is open. It waits through disconnects and lost sessions, and
// fails when ctx ends (the error wraps the context's), the session is closed
// (zksync.ErrClosed), or somebody resets the latch meanwhile (zksync.ErrBroken; also if it
// had opened at that very moment).
//
// Whoever counts the last event opens the latch with another request. If it dies in
// between, those who wait find out within a session timeout.
func (l *Latch) Wait(ctx context.Context) error {
	begun := int64(-1)
	return l.in(ctx, "wait", func(ctx context.Context, e *zkconn.Epoch, st state) error {
		if begun >= 0 && st.Generation != begun {
			return zksync.ErrBroken
		}
		begun = st.Generation
		err := untilGone(ctx, e, l.closed(st.Generation), func() error { return l.openIfDone(ctx, e, st) })
		if err != nil {
			return err
		}
		now, err := l.learn(ctx, e)
		if err == nil && now.Generation != begun {
			err = zksync.ErrBroken
		}
		return err
	})
}

// Done is closed when the latch has opened. It stays open when waiting ends without that:
// on a Reset, or when the session is closed.
func (l *Latch) Done() <-chan struct{} {
	done := make(chan struct{})
	l.door.Spawn(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if l.Wait(ctx) == nil {
			close(done)
		}
	})
	return done
}

// Count is how many events are still to come; 0 if the latch is open. It is what the leader of
// the servers knew at some instant of the call.
func (l *Latch) Count(ctx context.Context) (remaining int, err error) {
	err = l.in(ctx, "count", func(ctx context.Context, e *zkconn.Epoch, st state) error {
		names, err := l.names(ctx, e, l.counts(st.Generation))
		if err != nil {
			return err
		}
		_, closed, err := e.Exists(ctx, l.closed(st.Generation))
		remaining = max(l.total-events(names), 0)
		if !closed {
			remaining = 0
		}
		return err
	})
	return remaining, err
}
