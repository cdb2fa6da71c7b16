package zkflight

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Flight suppresses duplicate calls in a cluster. The goroutines of one process should share one Flight: then
// they are one contender on the servers.
type Flight[T any] struct {
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

// New names a group of keys. Its options are those of a lock, without WithHandover, WithLinger and
// WithAsyncUnlock.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Flight[T] {
	// The place of an entry in the queue decides which results are for its callers. So another call must not get the
	// entry, and the entry must not stay after its call.
	at := session.NewAccess("zkflight", (*session.Session)(s), path, opts).Without("WithHandover", "WithLinger", "WithAsyncUnlock")
	return &Flight[T]{opts: slices.Clone(opts), at: at, calls: make(map[string]*call[T])}
}

// made is f, which New has made. Of a zero or nil value it panics.
func (f *Flight[T]) made() *Flight[T] {
	if f == nil || f.at == nil {
		panic(errs.Unmade("zkflight", "a Flight", "New"))
	}
	return f
}

// Do runs fn, or waits for the present run for this key in any process, and returns its result. shared
// reports whether others got it, too.
//
// The context of fn has the values of ctx. It ends when all callers here have given up, and when the lease is
// lost (cause zksync.ErrLost). If fn panics or exits its goroutine, so do all callers here.
//
// If the lease was lost before the result was written, the error is zksync.ErrLost. A result that JSON cannot
// encode, or of more than 800 KB, is zksync.ErrMisuse. With these errors, and with [zksync.Ambiguous] ones, v
// is fn's value.
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

// DoChan is [Flight.Do] with a channel that will receive the results, and is not closed. If fn panics, the
// process ends. If fn calls runtime.Goexit, the result is an error.
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

// Forget makes the cluster forget a key: later calls do not get the result of a run that began before. Unlike
// with singleflight they wait until it has ended.
func (f *Flight[T]) Forget(ctx context.Context, key string) error {
	if err := f.made().at.Misuse(); err != nil {
		return f.named("forget", key, err)
	}
	// The write changes the version of the key's node. If that changes during a run, no other process gets the result.
	write := &zk.SetDataRequest{Path: f.at.Full(f.node(key)), Version: -1}
	err := f.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		_, err := node.RepeatChange(ctx, e, write)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // no process runs or waits
		}
		return err
	})
	// This comes last: a caller that comes after it cannot join a call with a run that began before.
	f.mu.Lock()
	delete(f.calls, key)
	f.mu.Unlock()
	return f.named("forget", key, err)
}

// node is the path of a key.
func (f *Flight[T]) node(key string) string { return f.at.Path + "/" + layout.NodeName(key) }

// named adds the operation and the path of the key to an error that does not have them.
func (f *Flight[T]) named(op, key string, err error) error {
	return errs.Wrap("zkflight", op, f.node(key), err)
}
