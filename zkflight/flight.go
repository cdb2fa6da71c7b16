package zkflight

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Flight suppresses duplicate calls in a cluster, like golang.org/x/sync/singleflight.Group for many machines. While
// a function runs under a key, all other callers that ask for the same key wait for that run and get its result. A
// caller that asks after the run has ended runs the function anew: unlike with zkonce.Once, no result is kept.
//
// All Flights with the same path are one, and must use the same T, which is sent as JSON. A Flight is safe for use by
// many goroutines. Those of one process should share one Flight: then they are one contender on the servers.
type Flight[T any] struct {
	path string
	s    *zksync.Session
	opts []zksync.Option
	at   *session.Access

	mu    sync.Mutex
	calls map[string]*call[T] // the calls that can be joined, by key
}

// Result has the results of [Flight.Do] for [Flight.DoChan].
type Result[T any] struct {
	Val    T
	Err    error
	Shared bool
}

// New names a group of keys by the path of its directory, which is created when it is first needed and
// belongs to the group. It does no I/O. The first call reports a malformed path, a nil session, an option
// that is not one of a lock, zksync.WithHandover, zksync.WithLinger or zksync.WithAsyncUnlock as zksync.ErrMisuse. The other options
// count for the locks under which functions run.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Flight[T] {
	// The place of an entry in the queue decides which results are for its callers. So another call must not get the
	// entry, and the entry must not stay after its call.
	at := session.NewAccess((*session.Session)(s), path, opts).Without("WithHandover", "WithLinger", "WithAsyncUnlock")
	return &Flight[T]{path: path, s: s, opts: slices.Clone(opts), at: at, calls: make(map[string]*call[T])}
}

// made is f, which New has made. Of a zero or nil value it panics.
func (f *Flight[T]) made() *Flight[T] {
	if f == nil || f.at == nil {
		panic(errs.Unmade("a Flight", "New"))
	}
	return f
}

// Do runs fn, or waits for the present run for this key in this process or another, and returns its result.
// shared reports whether others got it, too. In the process where fn ran the value is fn's own; elsewhere it is
// a copy from JSON. The key may be any text.
//
// A result is for all callers that asked before it was written, by the order of the servers' changes. A caller that
// cannot be shown to have asked in time asks anew. If the process that runs fn dies, is cut off for longer than the
// session timeout, or gives up because all its callers have, the next in the queue runs fn from the beginning, after
// what the first run has done. A process that was paused may continue fn while another process runs it. So send the
// token of the lease that [zksync.LeaseFrom] finds in fn's context with every write.
//
// The context of fn has the values of ctx. It ends when all callers in this process have given up, and when the lease
// is lost (cause zksync.ErrLost). fn runs in a goroutine of its own. If fn panics, Do panics for all callers in this
// process. If fn calls runtime.Goexit, their goroutines end. The callers in other processes get a [*RemoteError].
//
// Do blocks until there is a result. If ctx ends while fn runs, Do returns at once, and fn continues; if ctx ends
// while Do waits, it returns within 50 ms, the time to remove its node. Without a connection Do continues to wait, or
// fn to run. If the session is lost, Do queues anew, and may count as having asked then; if fn runs here, the lease is
// lost. If the session is closed, the error is zksync.ErrClosed.
//
// Errors: where fn ran, its error is returned unchanged; elsewhere it is a [*RemoteError] with its text. If ctx ends,
// the error wraps the context's error. If the lease was lost before the result could be written, the error wraps
// zksync.ErrLost, v is fn's value, and another process may have begun. If the result cannot be given to others,
// because T cannot be encoded as JSON or takes more than about 800 KB of it, the error is zksync.ErrMisuse, here with
// v, and also for the others. If eight attempts to write the result get no clear answer, the error satisfies
// [zksync.Ambiguous], and v is fn's value: others may have got it, or may run the function anew.
//
// Requests: five without other callers. A waiter makes seven behind one other, and about eight behind several. A goroutine that joins the process where fn runs makes none.
// Goroutines that join a waiting process make two reads together if they come within 10 ms: the reads tell
// whether a result is older than their calls.
func (f *Flight[T]) Do(ctx context.Context, key string, fn func(ctx context.Context) (T, error)) (v T, err error, shared bool) {
	c, n, err := f.made().join(ctx, key, fn)
	if err != nil {
		return v, err, false
	}
	r, exited := f.await(ctx, c, n, fn)
	if exited {
		runtime.Goexit()
	}
	return r.Val, r.Err, r.Shared
}

// DoChan is like [Flight.Do], but returns at once a channel that will receive the results. The channel is
// not closed. If fn panics, the process ends, because no goroutine could recover from the panic. If fn
// calls runtime.Goexit, the result is an error.
func (f *Flight[T]) DoChan(ctx context.Context, key string, fn func(ctx context.Context) (T, error)) <-chan Result[T] {
	ch := make(chan Result[T], 1)
	c, n, err := f.made().join(ctx, key, fn)
	if err != nil {
		ch <- Result[T]{Err: err}
		return ch
	}
	go func() {
		r, _ := f.await(ctx, c, n, fn)
		ch <- r
	}()
	return ch
}

// Forget makes the cluster forget a key: calls of [Flight.Do] that begin after Forget has returned, in any process,
// do not get the result of a run that began before Forget was called. That run continues, and its result is for the
// callers that had asked in its own process when it began. All others, also those that asked earlier, wait until it
// has ended, and one of them runs the function. So, unlike with singleflight's Forget, there are never two runs at a
// time. A run that begins during Forget may be shared.
//
// It blocks until the servers answer or ctx ends (the error wraps the context's error). Disconnects and lost
// sessions delay it. If the session is closed, the error is zksync.ErrClosed. After an error it is unknown whether
// the key is forgotten. It costs one request.
func (f *Flight[T]) Forget(ctx context.Context, key string) error {
	if err := f.made().at.Misuse(); err != nil {
		return f.wrap("forget", key, err)
	}
	// The write changes the version of the key's node. If that changes during
	// a run, no other process gets the result.
	write := &zk.SetDataRequest{Path: f.at.Full(f.node(key)), Version: -1}
	err := f.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{}); ; {
			if err := e.Await(ctx); err != nil {
				return err
			}
			_, err := e.StartMulti(write).Wait(ctx, e)
			switch {
			case errors.Is(err, zk.ErrNoNode):
				return nil // no process runs or waits
			case err == nil || !passes(err):
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	// This comes last: a caller that comes after it cannot join a call with a run that began before.
	f.mu.Lock()
	delete(f.calls, key)
	f.mu.Unlock()
	return f.wrap("forget", key, err)
}

// node is the path of a key.
func (f *Flight[T]) node(key string) string { return f.path + "/" + nodeName(key) }

// passes reports whether a request failed for a reason that may pass.
func passes(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent)
}

// wrap adds the operation and the path to an error that does not have them.
func (f *Flight[T]) wrap(op, key string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: f.node(key), Err: err}
}

// contextError is the error of a context that has ended, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
