package zkflight

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Flight suppresses duplicate calls in a cluster: the shape, and the meaning, of
// golang.org/x/sync/singleflight.Group for many machines. While a function runs under a
// key, whoever asks for the same key waits for that run and gets its result. Whoever asks
// after the run has ended runs the function anew: unlike zkonce.Once, nothing is kept.
//
// Everybody who names the same path and key means the same thing, and must use the same
// T, which travels as JSON. It is safe for use by many goroutines; those of one process
// should share one Flight, because they then are one contender for the servers.
type Flight[T any] struct {
	path string
	s    *zksync.Session
	opts []zksync.Option
	at   *session.Access

	mu    sync.Mutex
	calls map[string]*call[T] // those that can be joined, by key
}

// Result is what [Flight.DoChan] sends: the results of [Flight.Do].
type Result[T any] struct {
	Val    T
	Err    error
	Shared bool
}

// New names a group of keys by the path of its directory, which is created when first
// needed and belongs to the group. It does no I/O. A malformed path, an option that is not
// one of a lock, or a nil session is reported by the first call as zksync.ErrMisuse, and so are zksync.WithHandover and
// zksync.WithLinger. The other options count for the locks under which functions run.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Flight[T] {
	// A place in the queue says since when its owner waits, which decides who gets a
	// result. So none is ever handed over or kept.
	at := session.NewAccess((*session.Session)(s), path, opts).Without("WithHandover", "WithLinger")
	opts = append(slices.Clone(opts), zksync.WithHandover(0))
	return &Flight[T]{path: path, s: s, opts: opts, at: at, calls: make(map[string]*call[T])}
}

// Do runs fn, or waits for the run that is under way for this key, here or elsewhere in
// the cluster, and returns its result. shared reports whether others got it, too. The
// value is fn's own where fn ran, and a copy that went through JSON elsewhere. Any text
// will do as a key.
//
// Who gets a result: everybody who asked before it was written, as the order of the
// servers' changes shows it; who cannot be shown to have been in time asks anew. If the
// process that runs fn dies, is cut off for longer than the session timeout, or gives up
// because all who asked there have, the next one in the queue runs fn: from the beginning,
// after whatever the first one has done. A process that was paused may go on although
// another one runs by then: effects are fenced by the token of the lease that [Lease]
// finds in fn's context.
//
// The context that fn gets has the values of ctx. It ends when everybody in this process
// who waits for the result has given up, and when the lease is lost, cause zksync.ErrLost.
// fn runs in a goroutine of its own. If fn panics, so does Do, for everybody who waits in
// this process; if fn calls runtime.Goexit, their goroutines end. Others get a
// [*RemoteError]: no process dies of another one's panic.
//
// Do blocks until there is a result. When ctx ends it returns at once although fn may not
// have, else within 50 ms: it waits so long for the removal of its node. Without a
// connection it goes on waiting, or running. When the session is lost, it queues anew,
// and counts as having asked then; where fn runs, the lease is lost. When the session is
// closed, it fails.
//
// Errors: fn's own error is returned as it is where fn ran; elsewhere it is a
// [*RemoteError] with its text. If the lease was lost before the result could be written,
// the error wraps zksync.ErrLost, v is what fn returned, and another one may have begun.
// Otherwise Do fails when ctx ends (the error wraps the context's), the session is closed
// (zksync.ErrClosed), or the result cannot be given to others: T is not fit for JSON, or
// takes more than some 800 KB of it (zksync.ErrMisuse, with v, and for the others, too).
// If eight attempts to write the result get no answer, or none that settles anything, the
// error satisfies [zksync.Ambiguous], and v is what fn returned: others may have got it, or
// may run anew.
//
// Requests: five without anybody else, and up to three reads more where the servers take
// longer than 10 ms to queue it. A waiter makes eight. Goroutines that join where fn runs
// cost nothing; those that join a process that waits, two reads for all that come within
// 10 ms: they tell whether a result is older than their calls.
func (f *Flight[T]) Do(ctx context.Context, key string, fn func(ctx context.Context) (T, error)) (v T, err error, shared bool) {
	c, n, err := f.join(ctx, key, fn)
	if err != nil {
		return v, err, false
	}
	r, exited := f.await(ctx, c, n, fn)
	if exited {
		runtime.Goexit()
	}
	return r.Val, r.Err, r.Shared
}

// DoChan is like [Flight.Do], but returns a channel at once that will receive the results.
// The channel is not closed. If fn panics the process ends, since nobody could recover
// from it; if fn calls runtime.Goexit the result is an error.
func (f *Flight[T]) DoChan(ctx context.Context, key string, fn func(ctx context.Context) (T, error)) <-chan Result[T] {
	ch := make(chan Result[T], 1)
	c, n, err := f.join(ctx, key, fn)
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

// Forget has the cluster forget about a key: calls of [Flight.Do] that begin after it has
// returned, anywhere, do not get the result of a run that began before it was called. That
// run goes on, and its result is for those who had asked in the process where it runs when
// it began. All others, also those who asked before, wait until it has ended, and one of
// them runs the function. So, unlike with singleflight's Forget, there are never two runs
// at a time. A run that begins during the call may be shared.
//
// It blocks through disconnects and lost sessions until the servers answer, ctx ends (the
// error wraps the context's), or the session is closed (zksync.ErrClosed); after an error
// it is unknown whether the key is forgotten. It makes one request.
func (f *Flight[T]) Forget(ctx context.Context, key string) error {
	if err := f.at.Misuse(); err != nil {
		return f.wrap("forget", key, err)
	}
	// Every change of the key's node during a run has its result given to nobody elsewhere.
	write := &zk.SetDataRequest{Path: f.at.Full(f.node(key)), Version: -1}
	err := f.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{}); ; {
			if err := e.Await(ctx); err != nil {
				return err
			}
			_, err := e.StartMulti(write).Wait(ctx, e)
			switch {
			case errors.Is(err, zk.ErrNoNode):
				return nil // nobody runs, or waits
			case err == nil || !passes(err):
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	// Last, so that nobody who comes after this joins a call that has the old run.
	f.mu.Lock()
	delete(f.calls, key)
	f.mu.Unlock()
	return f.wrap("forget", key, err)
}

// node is the path of a key.
func (f *Flight[T]) node(key string) string { return f.path + "/" + nodeName(key) }

// passes reports whether a request failed for a reason that passes.
func passes(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent)
}

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

type leaseKey struct{}

// Lease is the lease under which a function of this package runs, by the context that it
// got; nil in any other context. Its token goes along with every write.
func Lease(ctx context.Context) *zksync.Lease {
	l, _ := ctx.Value(leaseKey{}).(*zksync.Lease)
	return l
}
