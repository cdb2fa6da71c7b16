package zklatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Latch opens when a number of events has been counted, wherever they were, and stays
// open until a Reset: j.u.c.'s CountDownLatch for many machines. It is safe for use by
// many goroutines.
//
// An event costs one request, the last one another, which opens the latch. Waiting costs two,
// or three if the latch is open already. After a Reset by somebody else the first call of an
// object costs two more. Only the first use of a path ever takes a few more, to create it.
type Latch struct {
	path      string
	total     int
	ephemeral bool
	door      door.Access
	plain     atomic.Bool // we may not write to the directory of the counts
	misuse    error
	seen      atomic.Pointer[latchView]

	mu   sync.Mutex
	done chan struct{} // of the wait for all calls of Done, while there is one
}

// LatchOption changes a default of a [Latch].
type LatchOption func(*Latch)

// Ephemeral has counts end with the session of whoever counted, as long as the latch has
// not opened. By default a count stays, whatever becomes of the process. A CountDown whose session is lost on the way
// may have to wait until the servers have ended that session.
func Ephemeral() LatchOption { return func(l *Latch) { l.ephemeral = true } }

// New names a latch of total events by a path of its own, which is created when first
// needed. The first who uses it stores total there; everybody else must say the same, else
// the first call fails with zksync.ErrMisuse. It does no I/O. A malformed path, a total
// below 1, or a nil session is reported by the first call as zksync.ErrMisuse.
func New(s *zksync.Session, path string, total int, opts ...LatchOption) *Latch {
	l := &Latch{path: path, total: total, door: door.Open(s, path)}
	for _, o := range opts {
		o(l)
	}
	if total < 1 {
		l.misuse = fmt.Errorf("%w: a latch of %d events; it needs one at least", zksync.ErrMisuse, total)
	}
	return l
}

func (l *Latch) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	if l.misuse != nil {
		return wrap(op, l.path, l.misuse)
	}
	return wrap(op, l.path, l.door.In(ctx, f))
}

// CountDown counts one event, once, whatever happens to the connection. It does not wait
// for others. Counting on when the latch is open is harmless, and leaves nothing behind. It
// blocks until the servers confirm it; it fails when ctx ends (the error wraps the context's,
// and the event may have been counted) or the session is closed (zksync.ErrClosed). If a request was
// not answered, and there were two Resets since this object last looked, nobody can tell any more
// whether the event was counted before them: then it fails with zksync.ErrBroken, and the event
// does not count now.
func (l *Latch) CountDown(ctx context.Context) error {
	t := newTally()
	return l.in(ctx, "count-down", func(ctx context.Context, e *zkconn.Epoch) error {
		return l.countDown(ctx, e, t)
	})
}

// Wait returns when the latch is open. It waits through disconnects and lost sessions, and
// fails when ctx ends (the error wraps the context's), the session is closed
// (zksync.ErrClosed), or somebody resets the latch meanwhile (zksync.ErrBroken; also, after a
// disconnect, if it had opened before).
//
// Whoever counts the last event opens the latch with another request. If it dies in
// between, those who wait find out within a session timeout.
func (l *Latch) Wait(ctx context.Context) error {
	var begun *latchView
	return l.in(ctx, "wait", func(ctx context.Context, e *zkconn.Epoch) error {
		return l.wait(ctx, e, &begun)
	})
}

// wait is Wait in one ZooKeeper session. begun is the generation in which it waits, once it does.
func (l *Latch) wait(ctx context.Context, e *zkconn.Epoch, begun **latchView) error {
	if err := l.begin(ctx, e, begun); err != nil {
		return err
	}
	for pace := (node.Pace{}); ; {
		v := l.known()
		if *begun != nil {
			v = **begun
		}
		news, err := l.news(ctx, e, v, begun)
		switch {
		case errors.Is(err, record.ErrAgain):
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
			continue
		case err != nil, news == zkconn.Gone:
			return err
		case news == zkconn.Cut:
			continue
		}
		now, err := l.look(ctx, e)
		switch {
		case err != nil:
			return err
		case *begun != nil && !(*begun).fits(now):
			return zksync.ErrBroken
		case news == zkconn.Missing && (*begun != nil || now == v):
			return nil
		}
	}
}

// begin makes sure that a Reset that came before the wait is seen. In a later session, what must be seen is the Reset that
// began the generation in which it waits: a server that has not heard of it lacks the node that is there while it is closed.
func (l *Latch) begin(ctx context.Context, e *zkconn.Epoch, begun **latchView) error {
	if err := record.Synced(ctx, e, l.base()); err != nil || e.Ordered() || *begun != nil {
		return err
	}
	// Here a watch does not tell whether its node was there.
	now, err := l.look(ctx, e)
	if err != nil {
		return err
	}
	_, closed, err := e.Exists(ctx, l.closed(now.generation))
	if closed {
		*begun = &now
	}
	return err
}

// news waits for news of the node that is there while the latch is closed. Missing means that there is none.
func (l *Latch) news(ctx context.Context, e *zkconn.Epoch, v latchView, begun **latchView) (zkconn.News, error) {
	if err := e.Await(ctx); err != nil {
		return 0, err
	}
	told := make(chan zkconn.News, 1)
	w, err := e.Watch(ctx, l.closed(v.generation), func(n zkconn.News) { told <- n })
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return zkconn.Missing, nil
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return 0, record.ErrAgain
	case err != nil:
		return 0, err
	}
	defer w.Stop()
	if e.Ordered() {
		*begun = &v
	}
	n, err := record.Await(ctx, e, told, func() error {
		if err := l.openIfDone(ctx, e, v); err != nil {
			return err
		}
		_, there, err := e.Exists(ctx, l.closed(v.generation))
		if err == nil && !there {
			err = record.ErrGone // see untilGone
		}
		return err
	})
	if errors.Is(err, record.ErrGone) {
		return zkconn.Missing, nil
	}
	if n == zkconn.Gone && !e.Ordered() { // what came before that, nobody has told
		n = zkconn.Missing
	}
	return n, err
}

// Done is closed when the latch has opened. It stays open when waiting ends without that:
// on a Reset, or when the session is closed. Call it again after a Reset. All calls share one wait, and one channel,
// until that ends.
func (l *Latch) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done != nil {
		return l.done
	}
	done := make(chan struct{})
	begun := l.door.Spawn(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		err := l.Wait(ctx)
		l.mu.Lock()
		l.done = nil // what becomes of the latch from here on, another wait tells
		l.mu.Unlock()
		if err == nil {
			close(done)
		}
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
		if err := record.Synced(ctx, e, l.base()); err != nil {
			return err
		}
		for v := l.known(); ; {
			_, closed, err := e.Exists(ctx, l.closed(v.generation))
			if err != nil {
				return err
			}
			if closed {
				n, err := l.counted(ctx, e, v)
				remaining = max(l.total-n, 0)
				return err
			}
			now, err := l.look(ctx, e)
			if err != nil || now == v {
				remaining = 0
				return err
			}
			v = now
		}
	})
	return remaining, err
}

func wrap(op, path string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: path, Err: err}
}
