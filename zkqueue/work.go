package zkqueue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// WorkOption changes what [Queue.Work] does with elements that fail, and at its end.
type WorkOption func(*rules)

// WithBackOff has an element wait before its next attempt: first after the first attempt, twice as long after each later one, most at
// most. The default is 1 s to 1 min.
func WithBackOff(first, most time.Duration) WorkOption {
	return func(r *rules) { r.first, r.most = first, most }
}

// WithMaxAttempts has an element become a dead letter after n attempts. The default is 10.
func WithMaxAttempts(n int) WorkOption { return func(r *rules) { r.attempts = n } }

// WithGrace is how long the functions under way go on when the context of Work has ended. The default is 30 s.
func WithGrace(d time.Duration) WorkOption { return func(r *rules) { r.grace = d } }

// rules are the values of all options together.
type rules struct {
	first, most time.Duration
	attempts    int
	grace       time.Duration
}

func rulesOf(opts []WorkOption) (r rules, err error) {
	r = rules{first: time.Second, most: time.Minute, attempts: 10, grace: 30 * time.Second}
	for _, o := range opts {
		if o == nil {
			return r, errs.Misuse("a nil WorkOption")
		}
		o(&r)
	}
	switch {
	case r.first <= 0 || r.most < r.first:
		err = errs.Misuse("a back-off from %v to %v; the first pause must be above 0, and the longest not shorter", r.first, r.most)
	case r.attempts < 1:
		err = errs.Misuse("%d attempts; give at least 1", r.attempts)
	case r.grace < 0:
		err = errs.Misuse("a grace of %v; 0 is none", r.grace)
	}
	return r, err
}

// pause is how long an element waits after its attempt of this number.
func (r rules) pause(attempt int) time.Duration {
	d := r.first
	for ; attempt > 1; attempt-- {
		if d > r.most/2 {
			return r.most
		}
		d *= 2
	}
	return d
}

// Work receives elements and calls f for each, n at a time, until ctx ends. If f returns nil, the element is acknowledged. If f fails
// or panics, it comes again after a growing pause, or becomes a dead letter: see [Queue.Dead]. An element that cannot be
// decoded is a dead letter at once; so is one that comes again after its last attempt, because no process has ended that.
//
// f's context ends with the lease, and after the grace. f may call Ack or Nack itself. When ctx ends,
// Work waits for f, acknowledges what succeeds, and returns nil. It goes on through lost sessions and outages; the
// error is one of zksync.ErrMisuse, ErrClosed and ErrBroken.
func (q *Queue[T]) Work(ctx context.Context, n int, f func(ctx context.Context, d *Delivery[T]) error, opts ...WorkOption) error {
	r, err := rulesOf(opts)
	switch {
	case q.made().at.Misuse() != nil:
		err = q.at.Misuse()
	case n < 1:
		err = errs.Misuse("%d elements at a time; give at least 1", n)
	case f == nil:
		err = errs.Misuse("a nil function")
	}
	if err != nil {
		return q.at.Named("work", err)
	}
	w := &work[T]{q: q, f: f, rules: r, turn: make(chan struct{}, 1)}
	w.receiving, w.stop = context.WithCancelCause(ctx)
	var ended context.CancelFunc
	w.working, ended = node.Extend(w.receiving, r.grace)
	defer ended()
	defer w.stop(nil)
	var all sync.WaitGroup
	for range n {
		all.Go(w.loop)
	}
	all.Wait()
	return q.at.Named("work", w.err)
}

// work is one call of Work.
type work[T any] struct {
	q *Queue[T]
	f func(context.Context, *Delivery[T]) error
	rules

	receiving context.Context // ends when nothing new is to be received
	stop      context.CancelCauseFunc
	working   context.Context // ends after the grace

	turn chan struct{} // is full while a goroutine looks for elements, or waits for one
	idle atomic.Bool   // the last element was one that a goroutine has waited for

	fail sync.Once
	err  error // the permanent one
}

// loop handles one element after the other.
func (w *work[T]) loop() {
	for pace := (node.Pace{Free: 1}); w.receiving.Err() == nil; {
		d, spoiled, err := w.receive()
		if err == nil {
			err = w.handle(d) // after an error the element comes again at once
		}
		switch {
		case err == nil:
			pace = node.Pace{Free: 1}
		case spoiled, w.receiving.Err() != nil:
		case errors.Is(err, errs.ErrMisuse), errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrBroken):
			w.fail.Do(func() { w.err = err })
			w.stop(err)
		default:
			w.q.at.Log().Once("work", w.q.at.Path).Warn("a worker cannot receive or end elements, trying again", "path", w.q.at.Path, "error", err)
			_ = pace.Rest(w.receiving, nil)
		}
	}
}

// arriving is how long a claim may take that is under way when nothing new is to be received. Then it is given back without
// counting as an attempt.
const arriving = 2 * time.Second

// receive is Receive, but what cannot be decoded becomes a dead letter: then spoiled is true, and there is an error.
func (w *work[T]) receive() (d *Delivery[T], spoiled bool, err error) {
	r := w.q.receives(w.receiving)
	r.grace, r.next, r.decode = arriving, w.next, w.decode
	r.spoiled = func(c *elements.Call, el elements.Content, why error) error {
		err := c.Bury(el, why.Error())
		if spoiled = err == nil; spoiled {
			w.q.died(w.receiving, session.Delivery{Attempt: el.Attempt()}, el.ID(), why.Error())
		}
		return err
	}
	d, err = r.end(w.q.raw.Run(r.ctx, "work", r.claim, session.Joined))
	return d, spoiled, err
}

// next is Queue.next, but one goroutine at a time looks for elements that no view shows, or waits in line. So an idle Work has one entry
// there, whatever n is. If it had to wait for the last element, there is hardly another one, and it goes into the line at once: the first
// there looks anyway.
func (w *work[T]) next(c *elements.Call, f func(elements.Content) error) error {
	for {
		p, err := c.Known(), error(nil)
		if p == nil {
			select {
			case w.turn <- struct{}{}:
			case <-c.Done():
				return c.Err()
			case <-c.Epoch.Over():
				return zkconn.ErrOver
			}
			if p = c.Known(); p == nil && !c.Made && !w.idle.Load() {
				p, _, err = c.First()
			}
			if p == nil && err == nil {
				defer func() { <-w.turn }()
				err = w.q.wait(c, f)
				w.idle.Store(err == nil)
				return err
			}
			<-w.turn
		}
		if err == nil {
			w.idle.Store(false)
			err = attempt(c, p, f)
		}
		if !errors.Is(err, elements.ErrChanged) {
			return err
		}
	}
}

// decode decodes an element. A codec that panics would do so again, in every process, before anything counts the attempt.
func (w *work[T]) decode(el elements.Content) (v T, err error) {
	err = called(func() error {
		v, err = w.q.decode(el)
		return err
	})
	return v, err
}

// handle works on an element. The error is of the request that ends the delivery.
func (w *work[T]) handle(d *Delivery[T]) error {
	how := elements.Ending{Again: true, Forgiven: true}
	switch {
	case w.receiving.Err() != nil:
	case d.Attempt > w.attempts: // it may be what ends the processes
		how = elements.Ending{Dead: true, Forgiven: true, Why: fmt.Sprintf("it has come again after its last attempt, %d of %d: a worker has died, or has lost it or given it back", d.Attempt-1, w.attempts)}
	default:
		under, end := d.lease.Bind(w.working)
		err := called(func() error { return w.f(under, d) })
		end()
		if d.lease.Err() != nil { // it was lost, or f has ended the delivery
			return nil
		}
		how = w.ending(d.Attempt, err)
	}
	return d.end(context.WithoutCancel(w.receiving), "work", how)
}

// ending is what becomes of an element after an attempt with this error.
func (w *work[T]) ending(attempt int, err error) elements.Ending {
	switch {
	case err == nil:
		return elements.Ending{}
	case w.stopped(err): // that is no failure, so there may be another attempt, also after the last one
		return elements.Ending{Again: true, Forgiven: attempt >= w.attempts}
	case attempt >= w.attempts:
		return elements.Ending{Dead: true, Why: err.Error()}
	}
	return elements.Ending{Again: true, Delay: w.pause(attempt)}
}

// stopped reports whether a function has failed because Work ends: after the grace, or with the error of the context of Work.
func (w *work[T]) stopped(err error) bool {
	if w.working.Err() != nil {
		return true
	}
	over := w.receiving.Err()
	return over != nil && (errors.Is(err, over) || errors.Is(err, context.Cause(w.receiving)))
}

// died logs and traces an element that has become a dead letter.
func (q *Queue[T]) died(ctx context.Context, d session.Delivery, id, why string) {
	q.at.Log().Once("dead", q.at.Path+" "+id).Warn("an element has become a dead letter", // each is a cause of its own
		"path", q.at.Path, "item", id, "attempt", d.Attempt, "error", why)
	d.Event = dead
	q.trace(ctx, d)
}

var errGoexit = errors.New("the function called runtime.Goexit")

// called calls a function of the user in a goroutine of its own, because it may call runtime.Goexit. A panic is an error.
func called(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, stack())
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}

// stack is where the present panic was raised: a few frames, from there on.
func stack() string {
	const frames = 8
	text := string(debug.Stack())
	if _, raised, found := strings.Cut(text, "\npanic("); found { // what is above it is this package's own
		text = raised
	}
	lines := strings.Split(text, "\n")
	if len(lines) > 2 {
		lines = lines[2:]
	}
	return strings.Join(lines[:min(len(lines), 2*frames)], "\n")
}
