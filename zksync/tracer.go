package zksync

import (
	"context"
	"time"
)

// Tracer is called when a goroutine begins to acquire a lease, and when that ends. Its methods must be quick,
// and must not call [Session.Close], which waits for them. It may also implement the optional parts: types
// whose names end with Tracer. A part that is not implemented costs nothing. [Tracers] combines several.
type Tracer interface {
	// AcquireStart is called before the first request. AcquireEnd and the lease's context have the context it
	// returns, which must derive from ctx: other tracers find their values there.
	AcquireStart(ctx context.Context, data AcquireStartData) context.Context
	// AcquireEnd is called once for every AcquireStart. After each one without an error there is exactly one
	// Release or Lost, also if the lease ended before.
	AcquireEnd(ctx context.Context, data AcquireEndData)
}

// WaitTracer is an optional part of a [Tracer].
type WaitTracer interface {
	// Wait is called when a waiter knows its place in the queue, and at each change that it learns of; it sends
	// nothing for that. It has a goroutine of its own, so it may still run when AcquireEnd is called, and does
	// not begin after that. ctx is that of AcquireStart.
	Wait(ctx context.Context, data WaitData)
}

// ReleaseTracer is an optional part of a [Tracer].
type ReleaseTracer interface {
	// Release is called when a holder has released, before the node is removed; by [Session.Close], when it has
	// ended all leases. ctx is the lease's.
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
	// Request is called at the end of every request that was sent, before its caller learns of the end; by several
	// goroutines at once. Other answers wait meanwhile, so it must not wait for anything, nor call what sends a
	// request. The handshake of a connection is no request.
	Request(data RequestData)
}

// PropagationTracer is an optional part of a [Tracer]. With it a wait with a traceparent costs one more request,
// which reads the entry that it waits for.
type PropagationTracer interface {
	// Propagate returns the W3C traceparent of the acquisition of ctx, for the entry that is about to be created;
	// others are left out. Everybody who may read the node can read it. AcquireEndData has it at a waiter as
	// AheadTrace, also at a hand-over inside the process.
	Propagate(ctx context.Context) string
}

// DeliveryTracer is an optional part of a [Tracer], called by a zkqueue.Queue.
type DeliveryTracer interface {
	// Delivery is called once for each event that is known to have happened. An element that is received is then
	// acked, nacked (also by Unlock or Close), dead (a dead letter), or its lease is lost: see LossTracer. So the numbers need
	// not add up: a loss is no event, and nor is an Ack whose error is Ambiguous; one that cannot be decoded may be dead without
	// being received. An element that is taken or drained is received and acked. One that is redriven is put.
	Delivery(ctx context.Context, data DeliveryData)
}

// TickTracer is an optional part of a [Tracer], called by a zkcron.Cron.
type TickTracer interface {
	// Tick is called when the end of a run is in the record (done, failed, panicked), and by the next holder of
	// the job if it is not (abandoned). A tick that runs although others before it were missed has that said
	// when it begins.
	Tick(ctx context.Context, data TickData)
}

// AssignTracer is an optional part of a [Tracer], called by the Assign of a zkgroup.Group.
type AssignTracer interface {
	// Assign is called before the function of an item (gained), and when it has returned (given up, done). Done
	// comes before it is on the servers: if the process dies between, the item runs again elsewhere.
	Assign(ctx context.Context, data AssignData)
}

// AcquireStartData describes an acquisition that begins.
type AcquireStartData struct {
	_        struct{}
	Path     string
	Name     string // of WithName at the object; else empty
	Kind     Kind
	Position int // entries ahead, as far as this process knows: 0 if it holds the place; -1 if unknown
}

// AcquireEndData describes how an acquisition ended.
type AcquireEndData struct {
	_          struct{}
	Path       string
	Name       string // of WithName at the object; else empty
	Kind       Kind
	Node       string        // path of the entry, if granted
	Position   int           // entries ahead when it queued; 0 for a hand-over inside the process; -1 if unknown
	Ahead      Owner         // who held when the wait failed, if its error says that, or before a hand-over; with a traceparent of its own before any grant
	AheadTrace string        // of the same entry, if it has one: see PropagationTracer
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
	Op       string        // create, delete, exists, get_data, set_data, get_children, multi, sync, ping, auth, close_session ...; other
	Duration time.Duration // since it was sent
	Code     int           // of ZooKeeper, of a multi of the operation that failed; 0 is success, and also stands for no answer
	Err      error         // nil for success; Ambiguous if the connection was lost first
	Sent     int           // bytes
	Received int           // bytes
}

// DeliveryData describes what happened to an element of a queue.
type DeliveryData struct {
	_       struct{}
	Path    string
	Name    string        // of WithName at the object; else empty
	Event   string        // put, received, acked, nacked, dead
	Attempt int           // of a delivery, from 1; 0 for put
	Token   Token         // of a delivery
	Held    time.Duration // of acked, nacked and dead, since the delivery
}

// TickData describes a tick of a job.
type TickData struct {
	_         struct{}
	Path      string
	Name      string // of WithName at the Cron; else empty
	Job       string
	Scheduled time.Time     // of a missed one that of the tick that runs
	OutOfTurn bool          // a run because of RunNow, and not a tick
	Outcome   string        // done, failed, panicked, abandoned, missed
	Missed    int           // ticks that this one stands for, if the outcome is missed
	Token     Token         // of the run; zero for missed
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
