package zksync

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Tracer is called when a goroutine begins to acquire a lease, and when that ends. Its methods must be quick,
// and must not call [Session.Close], which waits for them. It may also implement [ReleaseTracer],
// [LossTracer] and [StateTracer].
type Tracer interface {
	// AcquireStart is called before the first request. AcquireEnd and the lease's context have the context it
	// returns.
	AcquireStart(ctx context.Context, data AcquireStartData) context.Context
	// AcquireEnd is called once for every AcquireStart.
	AcquireEnd(ctx context.Context, data AcquireEndData)
}

// ReleaseTracer is an optional part of a [Tracer].
type ReleaseTracer interface {
	// Release is called when a holder has released, before the node is removed. ctx is the lease's.
	Release(ctx context.Context, data ReleaseData)
}

// LossTracer is an optional part of a [Tracer].
type LossTracer interface {
	// Lost is called when a lease ended without a release. ctx is the lease's.
	Lost(ctx context.Context, data LossData)
}

// StateTracer is an optional part of a [Tracer].
type StateTracer interface {
	// StateChange is called for every change of the state, in order.
	StateChange(data StateChangeData)
}

// AcquireStartData describes an acquisition that begins.
type AcquireStartData struct {
	_    struct{}
	Path string
	Kind Kind
}

// AcquireEndData describes how an acquisition ended.
type AcquireEndData struct {
	_      struct{}
	Path   string
	Kind   Kind
	Err    error         // nil if granted
	Token  Token         // zero unless granted
	Waited time.Duration // since AcquireStart
	Epoch  uint64        // counts ZooKeeper sessions
}

// ReleaseData describes a lease that was released.
type ReleaseData struct {
	_     struct{}
	Path  string
	Kind  Kind
	Token Token
	Held  time.Duration // since the grant
	Epoch uint64
}

// LossData describes a lease that was lost.
type LossData struct {
	_     struct{}
	Path  string
	Kind  Kind
	Token Token
	Held  time.Duration // until the loss
	Err   error         // wraps ErrLost
	Epoch uint64
}

// StateChangeData describes a change of a Session's state.
type StateChangeData struct {
	_       struct{}
	From    State // 0 for the first change
	To      State
	Session int64 // the lost one when To is Lost; 0 for none
	Epoch   uint64
}

// tracing adapts t, and those optional parts that it implements.
func tracing(t Tracer) *session.Trace {
	if t == nil {
		return nil
	}
	trace := &session.Trace{
		Start: func(ctx context.Context, path string, kind queue.Kind) context.Context {
			return t.AcquireStart(ctx, AcquireStartData{Path: path, Kind: Kind(kind)})
		},
		End: func(ctx context.Context, path string, kind queue.Kind, err error, g session.Granted, waited time.Duration) {
			t.AcquireEnd(ctx, AcquireEndData{Path: path, Kind: Kind(kind), Err: err, Token: Token(g.Token), Waited: waited, Epoch: g.Epoch})
		},
	}
	if t, ok := t.(ReleaseTracer); ok {
		trace.Release = func(ctx context.Context, path string, kind queue.Kind, g session.Granted, held time.Duration) {
			t.Release(ctx, ReleaseData{Path: path, Kind: Kind(kind), Token: Token(g.Token), Held: held, Epoch: g.Epoch})
		}
	}
	if t, ok := t.(LossTracer); ok {
		trace.Lost = func(ctx context.Context, path string, kind queue.Kind, g session.Granted, held time.Duration, err error) {
			t.Lost(ctx, LossData{Path: path, Kind: Kind(kind), Token: Token(g.Token), Held: held, Err: err, Epoch: g.Epoch})
		}
	}
	if t, ok := t.(StateTracer); ok {
		trace.State = func(from, to session.State, session int64, epoch uint64) {
			t.StateChange(StateChangeData{From: State(from), To: State(to), Session: session, Epoch: epoch})
		}
	}
	return trace
}
