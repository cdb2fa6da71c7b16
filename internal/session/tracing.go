package session

import (
	"context"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Trace has the functions of a tracer, as package zksync's Tracer and its optional
// parts have them. A function is nil if the tracer does not want that call: then nothing is done for it.
type Trace struct {
	Start     func(context.Context, Traced) context.Context
	End       func(context.Context, Traced)
	Waits     []func(context.Context, Traced) // one for each tracer
	Release   func(context.Context, Traced)
	Lost      func(context.Context, Traced)
	State     func(Change)
	Opened    func(*Session)
	Request   func(zkconn.Exchange)
	Propagate func(context.Context) string
	Delivery  func(context.Context, Delivery)
	Tick      func(context.Context, Tick)
	Assign    func(context.Context, Assign)
}

// Traced describes an acquisition, a wait or a hold. Each call says what it has.
type Traced struct {
	Path, Name string // Name is that of the object's own WithName
	Kind       queue.Kind
	Node       string        // as the session's user knows it
	Position   int           // entries ahead; -1 if unknown
	Ahead      node.Owner    // of the entry at the head, if known
	AheadTrace string        // of that entry, if known
	Token      node.Token    // of the grant
	Epoch      uint64        // of the grant: counts the ZooKeeper sessions of this Session from 1
	Span       time.Duration // of the wait until now, or of the hold
	Reason     string        // of a loss
	Err        error
}

// Change is a change of the state.
type Change struct {
	From, To State
	Session  int64 // the lost one
	Epoch    uint64
}

// Delivery is what happened to an element of a queue.
type Delivery struct {
	Path, Name string
	Event      string
	Attempt    int
	Token      node.Token
	Held       time.Duration
}

// Tick is what happened at a time of a job's schedule.
type Tick struct {
	Path, Name, Job string
	Scheduled       time.Time
	OutOfTurn       bool
	Outcome         string
	Missed          int
	Token           node.Token
	Took            time.Duration
	Err             error
}

// Assign is what happened to an item of a group.
type Assign struct {
	Path, Name, Member, Item string
	Event                    string
	Attempt                  int
	Err                      error
	Token                    node.Token
}

// With is both tracers: at each call t comes first. t may be nil.
func (t *Trace) With(u *Trace) *Trace {
	if t == nil {
		return u
	}
	return &Trace{
		Start: func(ctx context.Context, d Traced) context.Context { return u.Start(t.Start(ctx, d), d) },
		End:   bothIn(t.End, u.End), Waits: append(slices.Clip(t.Waits), u.Waits...), Release: bothIn(t.Release, u.Release), Lost: bothIn(t.Lost, u.Lost),
		State: both(t.State, u.State), Opened: both(t.Opened, u.Opened), Request: both(t.Request, u.Request),
		Propagate: firstOf(t.Propagate, u.Propagate),
		Delivery:  bothIn(t.Delivery, u.Delivery), Tick: bothIn(t.Tick, u.Tick), Assign: bothIn(t.Assign, u.Assign),
	}
}

// both calls f and then g, where each may be nil. It is nil if both are.
func both[D any](f, g func(D)) func(D) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(d D) { f(d); g(d) }
}

// bothIn is both for functions with a context.
func bothIn[D any](f, g func(context.Context, D)) func(context.Context, D) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(ctx context.Context, d D) { f(ctx, d); g(ctx, d) }
}

// firstOf is the first text that is not empty: a node has room for one.
func firstOf(f, g func(context.Context) string) func(context.Context) string {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(ctx context.Context) string {
		if text := f(ctx); text != "" {
			return text
		}
		return g(ctx)
	}
}
