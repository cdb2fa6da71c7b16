package zksync

import (
	"context"
	"time"
)

// Tracer is called when a goroutine begins to acquire a lease, and when that ends. Its methods must be quick,
// and must not call [Session.Close], which waits for them. It may also implement the optional parts: types
// whose names end with Tracer. A part that is not implemented costs nothing.
type Tracer interface {
	// AcquireStart is called before the first request. AcquireEnd and the lease's context have the context it
	// returns.
	AcquireStart(ctx context.Context, data AcquireStartData) context.Context
	// AcquireEnd is called once for every AcquireStart.
	AcquireEnd(ctx context.Context, data AcquireEndData)
}

// WaitTracer is an optional part of a [Tracer].
type WaitTracer interface {
	// Wait is called when a waiter knows its place in the queue, and at each change that it learns of. It sends
	// nothing for that. ctx is that of AcquireStart.
	Wait(ctx context.Context, data WaitData)
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

// SessionTracer is an optional part of a [Tracer].
type SessionTracer interface {
	// Opened is called by [Connect] with the session that it returns.
	Opened(s *Session)
}

// RequestTracer is an optional part of a [Tracer].
type RequestTracer interface {
	// Request is called at the end of every request, in the goroutine that reads the connection.
	Request(data RequestData)
}

// PropagationTracer is an optional part of a [Tracer]. With it a waiter makes one more request, to read who
// holds.
type PropagationTracer interface {
	// Propagate returns a W3C traceparent for the node that is about to be created for the acquisition of ctx;
	// everybody who may read the node can read it. AcquireEndData has it at a waiter as AheadTrace.
	Propagate(ctx context.Context) string
}

// DeliveryTracer is an optional part of a [Tracer], called by a zkqueue.Queue.
type DeliveryTracer interface {
	Delivery(ctx context.Context, data DeliveryData)
}

// TickTracer is an optional part of a [Tracer], called by a zkcron.Cron.
type TickTracer interface {
	// Tick is called when a tick has ended, or is known to have been missed.
	Tick(ctx context.Context, data TickData)
}

// AssignTracer is an optional part of a [Tracer], called by the Assign of a zkgroup.Group.
type AssignTracer interface {
	Assign(ctx context.Context, data AssignData)
}

// AcquireStartData describes an acquisition that begins.
type AcquireStartData struct {
	_        struct{}
	Path     string
	Name     string // of WithName at the object; else empty
	Kind     Kind
	Position int // entries ahead, as far as this process knows without a request; -1 if unknown
}

// AcquireEndData describes how an acquisition ended.
type AcquireEndData struct {
	_          struct{}
	Path       string
	Name       string // of WithName at the object; else empty
	Kind       Kind
	Node       string        // path of the entry, if granted
	Position   int           // entries ahead when it queued; 0 for a hand-over inside the process; -1 if unknown
	Ahead      Owner         // of the entry that held when the wait ended, or before the grant, if known
	AheadTrace string        // its traceparent, if known: see PropagationTracer
	Err        error         // nil if granted
	Token      Token         // zero unless granted
	Waited     time.Duration // since AcquireStart
	Epoch      uint64        // counts ZooKeeper sessions
}

// WaitData describes the place of a waiter.
type WaitData struct {
	_        struct{}
	Path     string
	Name     string // of WithName at the object; else empty
	Kind     Kind
	Node     string        // path of the entry
	Position int           // entries ahead
	Waited   time.Duration // since AcquireStart
	Epoch    uint64
}

// ReleaseData describes a lease that was released.
type ReleaseData struct {
	_     struct{}
	Path  string
	Name  string // of WithName at the object; else empty
	Kind  Kind
	Node  string // path of the entry
	Token Token
	Held  time.Duration // since the grant
	Epoch uint64
}

// LossData describes a lease that was lost.
type LossData struct {
	_      struct{}
	Path   string
	Name   string // of WithName at the object; else empty
	Kind   Kind
	Node   string // path of the entry
	Token  Token
	Held   time.Duration // until the loss
	Reason string        // one of the Reason constants
	Err    error         // wraps ErrLost
	Epoch  uint64
}

// The reasons of a loss.
const (
	ReasonSession = "session"  // the session cannot be proved to live
	ReasonRemoved = "removed"  // the node was removed by a program that did not say why
	ReasonRevoked = "revoked"  // menagerie release removed the node
	ReasonMaxHold = "max-hold" // WithMaxHold has passed
)

// StateChangeData describes a change of a Session's state.
type StateChangeData struct {
	_       struct{}
	From    State
	To      State
	Session int64 // the lost one when To is Lost; 0 for none
	Epoch   uint64
}

// RequestData describes a request that has ended.
type RequestData struct {
	_        struct{}
	Op       string        // create, delete, exists, get_data, set_data, get_children, multi, sync, ping ...
	Duration time.Duration // since it was sent
	Code     int           // of ZooKeeper; 0 is success, and also stands for no answer
	Err      error         // nil for success; Ambiguous if the connection was lost first
	Sent     int           // bytes
	Received int           // bytes
}

// DeliveryData describes what happened to an element of a queue.
type DeliveryData struct {
	_       struct{}
	Path    string
	Name    string        // of WithName at the object; else empty
	Event   string        // put, received, acked, nacked
	Attempt int           // of a delivery, from 1; 0 for put
	Token   Token         // of a delivery
	Held    time.Duration // of acked and nacked, since the delivery
}

// TickData describes a tick of a job.
type TickData struct {
	_         struct{}
	Path      string
	Name      string // of WithName at the Cron; else empty
	Job       string
	Scheduled time.Time
	Outcome   string // done, failed, panicked, abandoned, missed
	Missed    int    // ticks that this one stands for, if the outcome is missed
	Token     Token
	Took      time.Duration // of done, failed and panicked
	Err       error         // of failed, panicked and abandoned
}

// AssignData describes what happened to an item of an Assign.
type AssignData struct {
	_       struct{}
	Path    string
	Name    string // of WithName at the Group; else empty
	Member  string
	Item    string
	Event   string // gained, given up, done
	Attempt int    // failed runs of the item so far, here or elsewhere
	Err     error  // of a run that has failed
	Token   Token
}
