// Package door is how this module's recipes reach what package zksync keeps to itself:
// the queue, with its leases, and the connection. Users of the module have no business
// there, so it is not exported from zksync; and zksync cannot be imported from here.
// So zksync leaves its parts here when it is initialised.
//
// L stands for *zksync.Lease throughout.
package door

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Readers is the read side of a queue whose write side is a *zksync.Mutex. mirror marks
// a hold of the form without leases. Errors are bare reasons, to be wrapped.
type Readers[L any] interface {
	// Acquire waits for a read lease.
	Acquire(ctx context.Context, mirror bool) (L, error)
	// Try acquires a read lease if no writer holds or waits, else zksync.ErrNotAcquired.
	Try(ctx context.Context, mirror bool) (L, error)
	// Downgrade turns a lease of the write side into a read lease. If ctx ends before it
	// is known whether that was done, both are given up; after any other error the write
	// lease is what it was.
	Downgrade(ctx context.Context, write L) (L, error)
	// Close keeps readers to come out of the batch that is there: call it when a writer
	// of this process begins to wait.
	Close()
	// Anyone is a lease that is held now; the zero L without one.
	Anyone() L
}

// Permits is the core of a weighted semaphore. Errors are bare reasons.
type Permits[L any] interface {
	// Acquire waits for n permits, all or nothing.
	Acquire(ctx context.Context, n int64, mirror bool) (L, error)
	// Try acquires n permits if that is possible at once, else zksync.ErrNotAcquired.
	Try(ctx context.Context, n int64, mirror bool) (L, error)
	// Shrink gives n of the permits of l back, fewer than it has, and returns the lease
	// of the rest; l ends. ok is false, and nothing was done, where that is not possible.
	Shrink(ctx context.Context, l L, n int64) (rest L, ok bool, err error)
	// Permits is how many permits l stands for.
	Permits(l L) int64
	// Resize changes how many permits there are, for everybody.
	Resize(ctx context.Context, n int64) error
	// Available is how many permits nobody holds.
	Available(ctx context.Context) (int64, error)
	// Contenders is a []zksync.Contender.
	Contenders(ctx context.Context) (any, error)
}

// Candidacy is the core of an election. Errors are bare reasons.
type Candidacy[L any] interface {
	// Acquire waits until this candidate leads.
	Acquire(ctx context.Context) (L, error)
	// Try leads if nobody else is a candidate, else zksync.ErrNotAcquired.
	Try(ctx context.Context) (L, error)
	// List reads the first candidates in order, at most limit; the first one leads. For
	// use in [Access.In].
	List(ctx context.Context, e *zkconn.Epoch, limit int) ([]Candidate, error)
}

// Candidate is what the node of a candidate says of him.
type Candidate struct {
	ID      string
	Data    []byte
	Node    string // on the servers
	Session int64
	Zxid    int64 // of his token
}

// Access is what a recipe that keeps nodes of its own needs of a session.
type Access interface {
	// Misuse is an error of the constructor: no session, or a malformed path.
	Misuse() error
	Client() *zkconn.Client
	// Full is the path on the servers of one of the session's paths, Local the reverse.
	Full(path string) string
	Local(path string) string
	// In runs f in the ZooKeeper session of the moment, and again in the next one when
	// that ends (f returns zkconn.ErrOver). f's context ends with ctx and when the session
	// closes. Errors are made fit for the caller, but not wrapped.
	In(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error
	// Spawn runs f in a goroutine that the session's Close joins, or reports false once
	// that has begun. Closed is closed then.
	Spawn(f func()) bool
	// Begin has Close wait for End, or reports false once that has begun: Spawn for who is not always to be
	// waited for, because it runs what is the user's in between.
	Begin() bool
	End()
	Closed() <-chan struct{}
	ACL() []zk.ACL
	// Owner is the data of a node that says whose it is.
	Owner() []byte
}

// Set by zksync before main; the arguments s, lease and opts are *zksync.Session, *zksync.Lease and
// []zksync.Option.
var (
	// RW makes both sides of a read-write lock: a *zksync.Mutex and a Readers.
	RW func(s any, path string, opts any) (write, read any)
	// NewPermits makes a Permits of n.
	NewPermits func(s any, path string, n int64, opts any) any
	// NewCandidacy makes a Candidacy.
	NewCandidacy          func(s any, path string, c Candidate, opts any) any
	scope, guard, release any
	// Briefly makes an attempt of a form without leases by the rule that all locks have: see
	// zksync.Mutex.TryLock. It reports whether it succeeded, and panics on errors that trying again would not mend.
	Briefly func(s any, try func(context.Context) error) bool
	// DropIn locks a *zkrwmutex.RWMutex in its form without leases, for who counts levels of his own:
	// it gives the *zksync.Lease, which that one unlocks. zkrwmutex sets it.
	DropIn func(rw any, read, try bool) (lease any, ok bool)
	// Open gives access to a session, for the recipe at path.
	Open func(s any, path string) Access
	// CloseWithin is Close of a session for a caller whose time is up: it spends d at most on servers
	// that do not answer. A goroutine of the client library may outlive it by a second.
	CloseWithin func(s any, d time.Duration) error
)

// ScopeFunc runs f under a lease and unlocks: see zksync.Mutex.Do.
type ScopeFunc[L any] func(ctx context.Context, l L, f func(context.Context, L) error) error

// ProvideScope is called by zksync.
func ProvideScope[L any](f ScopeFunc[L]) { scope = f }

// Scope runs f under l and unlocks.
func Scope[L any](ctx context.Context, l L, f func(context.Context, L) error) error {
	return scope.(ScopeFunc[L])(ctx, l, f)
}

// GuardFunc is zksync.Lease.Guard for a caller with a context. Errors are bare reasons; that of
// a context that ended after the request was sent is zksync.Ambiguous.
type GuardFunc[L any] func(ctx context.Context, l L, ops []any) ([]zk.MultiResponse, error)

// ProvideGuard is called by zksync.
func ProvideGuard[L any](f GuardFunc[L]) { guard = f }

// Guard runs operations as one transaction that is applied only if l still holds.
func Guard[L any](ctx context.Context, l L, ops ...any) ([]zk.MultiResponse, error) {
	return guard.(GuardFunc[L])(ctx, l, ops)
}

// ReleaseFunc unlocks l; if ctx has ended, its caller has no time to wait for the servers.
type ReleaseFunc[L any] func(ctx context.Context, l L)

// ProvideRelease is called by zksync.
func ProvideRelease[L any](f ReleaseFunc[L]) { release = f }

// Release unlocks l, within the time that a caller with ctx has.
func Release[L any](ctx context.Context, l L) { release.(ReleaseFunc[L])(ctx, l) }
