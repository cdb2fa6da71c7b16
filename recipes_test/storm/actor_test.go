package storm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// slack is how late a call may come back after its context has ended.
const slack = 100 * ms

// errUnknown stands for all errors that are Ambiguous, among those that may be.
var errUnknown = errors.New("ambiguous")

// actor is a goroutine of a process.
type actor struct {
	w    *world
	part *part
	name string
	h    *house
	rnd  *rand.Rand
}

func (a *actor) live() {
	for !a.w.over.Load() {
		a.rest()
		a.part.act(a)
	}
}

// rest is what it does between two things.
func (a *actor) rest() {
	switch n := a.rnd.IntN(10); {
	case n < 4:
		time.Sleep(a.upTo(50 * ms))
	case n < 9:
		time.Sleep(a.upTo(time.Second))
	default:
		time.Sleep(a.upTo(8 * time.Second))
	}
}

func (a *actor) upTo(d time.Duration) time.Duration { return upTo(a.rnd, d) }

// upTo draws a time of whole milliseconds, one at least.
func upTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(1+rnd.Int64N(int64(d/ms))) * ms
}

func (a *actor) oneIn(n int) bool { return a.rnd.IntN(n) == 0 }

// call is one call of the library.
type call struct {
	a      *actor
	what   string
	cancel context.CancelFunc

	began, ended time.Time
	from, to     int64     // by the world's count
	limit        time.Time // when its context ends; zero for never; guarded by world.mu
	late         time.Duration
	passed       int // how many calls that take turns with it have come and gone meanwhile; guarded by world.mu
	err          error
}

func (c *call) String() string { return fmt.Sprintf("%s/%s %s", c.a.h, c.a.name, c.what) }

// patience draws how long a call may take: an hour, or not long.
func (a *actor) patience() time.Duration {
	switch a.rnd.IntN(4) {
	case 0:
		return a.upTo(100 * ms)
	case 1:
		return a.upTo(8 * time.Second)
	default:
		return time.Hour
	}
}

// fair is how many others may have their turn while one waits for its own: an object may hand over 32 times in a row.
const fair = 40

// asks is how a call is made: [actor.ask], or without a storm.
type asks func(what string, f func(context.Context) error, may ...error) *call

// ask makes a call with a context, of a patience that is drawn; may are the errors that are in order besides that of
// the context and of a session that was closed.
func (a *actor) ask(what string, f func(ctx context.Context) error, may ...error) *call {
	return a.askFor(a.patience(), what, f, may...)
}

func (a *actor) askFor(patience time.Duration, what string, f func(ctx context.Context) error, may ...error) *call {
	return a.askLate(patience, slack, what, f, may...)
}

// askLate makes a call that may come back so late after the end of its context.
func (a *actor) askLate(patience, late time.Duration, what string, f func(ctx context.Context) error, may ...error) *call {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := &call{a: a, what: fmt.Sprintf("%s(%v)", what, patience), cancel: cancel, limit: time.Now().Add(patience), late: late}
	a.make(c, func() error { return f(ctx) }, may)
	return c
}

// say makes a call that has no context. It panics if the session is closed, also meanwhile: see house.open.
func (a *actor) say(what string, f func()) *call {
	c := &call{a: a, what: what}
	a.make(c, func() error { f(); return nil }, nil)
	return c
}

// tell makes a call without context that returns an error.
func (a *actor) tell(what string, f func() error, may ...error) *call {
	c := &call{a: a, what: what}
	a.make(c, f, may)
	return c
}

func (a *actor) make(c *call, f func() error, may []error) {
	w := a.w
	c.began, c.from = time.Now(), w.stamp()
	w.tell("%s", c)
	w.mu.Lock()
	w.calls = append(w.calls, c)
	w.mu.Unlock()
	c.err = a.guarded(c, f)
	c.ended, c.to = time.Now(), w.stamp()
	w.mu.Lock()
	limit := c.limit
	w.calls = slices.DeleteFunc(slices.Clone(w.calls), func(x *call) bool { return x == c })
	w.mu.Unlock()
	w.tell("%s: %v after %v", c, c.err, c.ended.Sub(c.began))
	if !limit.IsZero() {
		w.must(!c.ended.After(limit.Add(c.late)), "%s came back %v late (session timeout %v)", c, c.ended.Sub(limit), a.h.timeout)
	}
	if c.err == nil && a.turns(c.what) {
		w.passes(c)
	}
	a.judge(c, limit, may)
}

// turns reports whether a call takes turns with others of its kind.
func (a *actor) turns(what string) bool {
	return slices.ContainsFunc(a.part.turns, func(t string) bool { return strings.HasPrefix(what, t) })
}

// passes counts a call for those that began before it and wait for their turn. While nothing goes wrong nobody is passed for ever.
func (w *world) passes(c *call) {
	var unfair []*call
	w.mu.Lock()
	for _, o := range w.calls {
		if o.a.part != c.a.part || !w.srv.still || o.began.After(c.began) || !o.a.turns(o.what) {
			continue
		}
		o.passed++
		w.most("passed "+o.a.part.name, o.passed)
		if o.passed == fair+1 {
			unfair = append(unfair, o)
		}
	}
	w.mu.Unlock()
	for _, o := range unfair {
		w.must(false, "%s waits since %v, and %d others have had their turn meanwhile", o, o.began.Sub(w.began), fair+1)
	}
}

// guarded is f, and whatever it panics with.
func (a *actor) guarded(c *call, f func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			var is bool
			if err, is = x.(error); !is {
				err = fmt.Errorf("panic: %v", x)
			}
		}
	}()
	return f()
}

// judge looks whether an error is one that may be.
func (a *actor) judge(c *call, limit time.Time, may []error) {
	over := !limit.IsZero() && !c.ended.Before(limit)
	var remote *zkflight.RemoteError // of a function that ran elsewhere
	ended := errors.Is(c.err, context.DeadlineExceeded) || errors.Is(c.err, context.Canceled)
	switch {
	case c.err == nil, errors.As(c.err, &remote):
	case ended:
		a.w.must(over, "%s: %v, and its context has not ended", c, c.err)
	case errors.Is(c.err, zksync.ErrClosed), errors.Is(c.err, zksync.ErrReleased): // Close releases
		a.w.must(a.h.years() > 0, "%s: %v, and no session was closed", c, c.err)
	case errors.Is(c.err, zk.ErrSessionMoved): // see harps
	case zksync.Ambiguous(c.err) && a.h.unsettledSince(c.began): // the last of several tries was lost
	case slices.ContainsFunc(may, func(e error) bool { return errors.Is(c.err, e) || e == errUnknown && zksync.Ambiguous(c.err) }):
	default:
		a.w.must(false, "%s: %v", c, c.err)
	}
	if errors.Is(c.err, zksync.ErrClosed) {
		time.Sleep(time.Second) // until the next session is there
	}
}

// perCall is how many requests a call may make when all is well, with the watches and looks of those that wait for a minute.
const perCall = 100

// all lets one goroutine in every house make a call, and wants them to succeed. It is for when all is well.
func (w *world) all(what string, n int, f func(ctx context.Context, a *actor, i int) error) {
	done := make(chan struct{})
	before := w.meter.requests()
	for i := range n {
		a := &actor{w: w, part: &part{}, name: fmt.Sprintf("last%d", i), h: w.houses[i%len(w.houses)], rnd: w.stream(5000 + i)}
		go func() {
			c := a.askFor(time.Minute, what, func(ctx context.Context) error { return f(ctx, a, i) })
			w.must(c.err == nil, "%s, when all was well: %v", c, c.err)
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	each := (w.meter.requests() - before) / n
	w.most("requests of a call", each)
	w.must(each <= perCall, "%s, when all was well: %d requests each", what, each)
}

// pause lets n seconds pass.
func (w *world) pause(n int) { time.Sleep(time.Duration(n) * time.Second) }

// lives reports whether a ZooKeeper session has not ended on the server.
func (w *world) lives(id int64) bool {
	return slices.ContainsFunc(w.srv.Sessions(), func(s zktest.SessionInfo) bool { return s.ID == id })
}
