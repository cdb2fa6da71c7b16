package zkflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
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
	door door.Access

	mu    sync.Mutex
	calls map[string]*flightCall[T]
	// generations are those that keys were last seen in, unless it is the first: see
	// Forget. It saves a detour, no more, so it may be emptied at any time.
	generations map[string]int64
}

// Result is what [Flight.DoChan] sends: the results of [Flight.Do].
type Result[T any] struct {
	Val    T
	Err    error
	Shared bool
}

// flightCall is all who ask for one key in this process.
type flightCall[T any] struct {
	ctx     context.Context // ends when nobody here waits any more
	cancel  context.CancelCauseFunc
	running chan struct{} // closed before the function is called here
	joined  chan struct{} // has something in it when somebody has joined
	split   chan struct{} // closed when the key has been forgotten; then seated counts
	done    chan struct{} // closed when landing is there

	landing[T] // valid once done is closed

	// Under the Flight's mu.
	callers int
	waiting int // of them, those that have not given up
	seated  int // so many had boarded before the key was forgotten, for certain
	divided bool
	ended   bool
}

// New names a group of keys by the path of its directory, which is created when
// first needed and belongs to the group. It does no I/O. A malformed path, an option that
// is not one of a lock, or a nil session is reported by the first call as
// zksync.ErrMisuse. The options count for the locks under which functions run; those on
// handing over and lingering mean nothing here.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Flight[T] {
	// A place in the queue says since when its owner waits, which decides who gets a
	// result. So none is ever handed over or kept.
	opts = append(append([]zksync.Option(nil), opts...), zksync.WithHandover(0), zksync.WithLinger(0))
	return &Flight[T]{
		path: path, s: s, opts: opts, door: door.Open(s, path),
		calls: make(map[string]*flightCall[T]), generations: make(map[string]int64),
	}
}

// Do runs fn, or waits for the run that is under way for this key, here or elsewhere in
// the cluster, and returns its result. shared reports whether others got it, too. The
// value is fn's own where fn ran, and a copy that went through JSON elsewhere. Any text
// will do as a key.
//
// Who gets a result: everybody who queued for the key, by the servers' order, before the
// result was written. Who came later runs anew. If the process that runs fn dies, is cut
// off for longer than the session timeout, or gives up because all who asked there have,
// the next one in the queue runs fn: from the beginning, after whatever the first one has
// done. A process that was paused may go on although another one runs by then: as with
// zkonce.Once, effects are fenced by the token of the lease that [Lease] finds in fn's context.
//
// The context that fn gets has the values of ctx. It ends when everybody in this process
// who waits for the result has given up, and when the lease is lost, cause zksync.ErrLost.
// fn runs in a goroutine of its own; when ctx ends, Do returns although fn may not have.
//
// Errors: fn's own error is returned as it is where fn ran; elsewhere it is a
// [*RemoteError] with its text. If the lease was lost before the result could be written,
// the error wraps zksync.ErrLost, v is what fn returned, and another one may have begun.
// Otherwise Do fails when ctx ends (the error wraps the context's), the session is closed
// (zksync.ErrClosed), or the result cannot be given to others: T is not fit for JSON, or
// takes more than some 800 KB of it (zksync.ErrMisuse, with v, and for the others, too).
// If eight attempts to write the result get no answer, or none that settles anything, the error
// satisfies [zksync.Ambiguous], and v is what fn returned: others may have got it, or may run anew.
//
// If fn panics, so does Do, for everybody who waits in this process; if fn calls
// runtime.Goexit, their goroutines end. Others get a [*RemoteError]: no process dies of
// another one's panic.
//
// Without anybody else it costs six requests, and up to four reads more where the servers
// take longer than 10 ms to queue it. A waiter makes nine. Goroutines of one process that
// join cost two reads together where fn runs, and three for all that come at a time elsewhere:
// they tell whether a result, or a Forget, is older than their calls.
func (f *Flight[T]) Do(ctx context.Context, key string, fn func(ctx context.Context) (T, error)) (v T, err error, shared bool) {
	c, seat, err := f.board(ctx, key, fn)
	if err != nil {
		return v, err, false
	}
	r := f.await(ctx, key, c, seat, fn)
	if r.gone {
		runtime.Goexit()
	}
	return r.Val, r.Err, r.Shared
}

// DoChan is like [Flight.Do], but returns a channel at once that will receive the results.
// The channel is not closed. If fn panics the process ends, since nobody could recover
// from it; if fn calls runtime.Goexit the result is an error.
func (f *Flight[T]) DoChan(ctx context.Context, key string, fn func(ctx context.Context) (T, error)) <-chan Result[T] {
	ch := make(chan Result[T], 1)
	c, seat, err := f.board(ctx, key, fn)
	if err != nil {
		ch <- Result[T]{Err: err}
		return ch
	}
	go func() { ch <- f.await(ctx, key, c, seat, fn).Result }()
	return ch
}

// board joins the call for a key, or begins it. seat counts those who have.
func (f *Flight[T]) board(ctx context.Context, key string, fn func(context.Context) (T, error)) (c *flightCall[T], seat int, err error) {
	if err := f.door.Misuse(); err != nil {
		return nil, 0, f.wrap("do", key, err)
	}
	if ctx.Err() != nil {
		return nil, 0, f.wrap("do", key, contextError(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c = f.calls[key]
	if c == nil {
		if !f.door.Begin() {
			return nil, 0, f.wrap("do", key, zksync.ErrClosed)
		}
		c = &flightCall[T]{running: make(chan struct{}), joined: make(chan struct{}, 1), split: make(chan struct{}), done: make(chan struct{})}
		c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		f.calls[key] = c
		go f.fly(c, key, fn)
	} else {
		select {
		case c.joined <- struct{}{}:
		default:
		}
	}
	c.callers++
	c.waiting++
	return c, c.callers, nil
}

// seats is how many have boarded a call so far.
func (f *Flight[T]) seats(c *flightCall[T]) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return c.callers
}

// closeDoors has whoever asks from now on begin a call of his own.
func (f *Flight[T]) closeDoors(c *flightCall[T], key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[key] == c {
		delete(f.calls, key)
	}
}

// divide has whoever boarded after the first so many begin a call of his own, too, at once:
// the key has been forgotten.
func (f *Flight[T]) divide(c *flightCall[T], key string, seated int) {
	f.closeDoors(c, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.divided {
		return
	}
	c.divided, c.seated = true, seated
	close(c.split)
}

// answer is what one caller gets.
type answer[T any] struct {
	Result[T]
	gone bool // fn called runtime.Goexit
}

// await waits for a call, and for another one if that was not for this caller, or for the
// end of ctx. It panics if fn did.
func (f *Flight[T]) await(ctx context.Context, key string, c *flightCall[T], seat int, fn func(context.Context) (T, error)) answer[T] {
	for !f.wait(ctx, key, c, seat) {
		var err error
		if ctx.Err() != nil {
			err = f.wrap("do", key, contextError(ctx))
		} else {
			c, seat, err = f.board(ctx, key, fn)
		}
		if err != nil {
			return answer[T]{Result: Result[T]{Err: err}}
		}
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	r := Result[T]{c.val, c.err, c.callers > 1 || c.foreign || c.others}
	if c.gone {
		r.Err = f.wrap("do", key, errGoexit)
	}
	return answer[T]{r, c.gone}
}

// wait waits until the call has ended, and reports whether what it ended with is for the
// caller in this seat. It is not if the result may have been written before he asked, or the
// key may have been forgotten before.
func (f *Flight[T]) wait(ctx context.Context, key string, c *flightCall[T], seat int) bool {
	for split := c.split; ; split = nil {
		select {
		case <-c.done:
			return seat <= c.entitled
		case <-ctx.Done():
			if f.leave(ctx, key, c) {
				return false
			}
			<-c.done // a panic must come out somewhere
			return seat <= c.entitled
		case <-split:
			if seat > c.seated && f.leave(ctx, key, c) {
				return false
			}
		}
	}
}

// leave gives up for one caller, or reports false if the call has ended. The last one ends
// what is done for all.
func (f *Flight[T]) leave(ctx context.Context, key string, c *flightCall[T]) bool {
	f.mu.Lock()
	if c.ended {
		f.mu.Unlock()
		return false
	}
	c.waiting--
	last := c.waiting == 0
	if last && f.calls[key] == c {
		delete(f.calls, key)
	}
	f.mu.Unlock()
	if !last {
		return true
	}
	c.cancel(cmp.Or(context.Cause(ctx), context.Canceled))
	// As with a mutex: with a healthy connection nothing is left when the call returns.
	t := time.NewTimer(node.Grace)
	defer t.Stop()
	select {
	case <-c.done:
	case <-c.running: // and fn ends when it likes
	case <-t.C:
	}
	return true
}

// land ends a call.
func (f *Flight[T]) land(c *flightCall[T], key string, l landing[T]) {
	f.mu.Lock()
	c.landing, c.ended = l, true
	if f.calls[key] == c {
		delete(f.calls, key)
	}
	alone := c.waiting == 0
	f.mu.Unlock()
	c.cancel(nil)
	close(c.done)
	if alone && l.panicked != nil {
		panic(l.panicked) // everybody has given up, and a panic must come out somewhere
	}
}

func (f *Flight[T]) wrap(op, key string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: f.path + "/" + nodeName(key), Err: err}
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
