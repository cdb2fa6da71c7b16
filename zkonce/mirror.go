package zkonce

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// Do calls f if and only if no process in the cluster has, and waits until the function has returned, in whichever
// process it runs. As with sync.Once, a function that panics counts as done, and Do panics only in the goroutine that
// ran it. Unlike with sync.Once, a function that calls runtime.Goexit does not count, and the next caller runs it.
//
// It blocks without a bound, through disconnects and lost sessions. It panics with a *zksync.Error if the session is
// closed, the path is malformed, or the servers refuse for good. It costs the requests of DoContext.
//
// Do calls f once at most, also if the lease is lost while f runs. Then another process may run its function
// at the same time: see the package comment.
func (o *Once) Do(f func()) {
	var panicked any
	_, err := o.once(func() []byte {
		defer func() { panicked = recover() }()
		f()
		return nil
	}, &panicked)
	if panicked != nil {
		panic(panicked)
	}
	if err != nil {
		panic(o.wrap("once", err))
	}
}

// once calls f, once at most in this process, and keeps its outcome. If the lease is lost, or it is unknown whether
// the outcome is kept, it tries again with the same outcome. If f panics, once sets *panicked.
func (o *Once) once(f func() []byte, panicked *any) (*outcome, error) {
	var ours *outcome
	for pace := (node.Pace{}); ; {
		r, err := o.do(context.Background(), false, func(context.Context) (*outcome, error) {
			if ours == nil {
				ours = &outcome{Value: f()}
				if *panicked != nil {
					text := fmt.Sprint(*panicked)
					ours = &outcome{Panic: &text}
				}
			}
			return ours, nil
		})
		if !errors.Is(err, zksync.ErrLost) && !zksync.Ambiguous(err) {
			return r, err
		}
		_ = pace.Rest(context.Background(), nil)
	}
}

// OnceFunc returns a function that calls f if and only if no process in the cluster has: like sync.OnceFunc,
// with [Once.Do]. If f panics, the returned function panics on every call: with the same value if it called f
// itself, otherwise with the text of that value.
func OnceFunc(s *zksync.Session, path string, f func(), opts ...zksync.Option) func() {
	values := OnceValue(s, path, func() struct{} { f(); return struct{}{} }, opts...)
	return func() { values() }
}

// OnceValue returns a function that returns the result of f, in whichever process of the cluster f ran: like
// sync.OnceValue. The value is kept as JSON. If T is the type error, its text is kept; only a function that called f
// itself returns the error itself. An error is kept like any other value: to try again after an error, use
// [Once.DoContext]. The function panics like [Once.Do] and, if f panicked, like that of [OnceFunc].
func OnceValue[T any](s *zksync.Session, path string, f func() T, opts ...zksync.Option) func() T {
	o := New(s, path, opts...)
	var values carrier[T]
	var mu sync.Mutex
	var local any // the value with which f panicked, if it was called here
	return func() T {
		var panicked any
		r, err := o.once(func() []byte {
			defer func() { panicked = recover() }()
			data, err := values.pack(f())
			if err != nil {
				panic(unfit(path, err))
			}
			return data
		}, &panicked)
		if err != nil {
			panic(o.wrap("once", err))
		}
		mu.Lock()
		if panicked != nil {
			local = panicked
		}
		again := local
		mu.Unlock()
		if r.Panic != nil {
			if again != nil {
				panic(again)
			}
			panic(*r.Panic)
		}
		value, err := values.unpack(r.Value)
		if err != nil {
			panic(o.wrap("once", unlike(err)))
		}
		return value
	}
}

// OnceValues is OnceValue for two results, like sync.OnceValues. The second result often is an error.
func OnceValues[T1, T2 any](s *zksync.Session, path string, f func() (T1, T2), opts ...zksync.Option) func() (T1, T2) {
	var firsts carrier[T1]
	var seconds carrier[T2]
	type pair struct{ First, Second json.RawMessage }
	both := OnceValue(s, path, func() pair {
		a, b := f()
		first, err1 := firsts.pack(a)
		second, err2 := seconds.pack(b)
		if err := cmp.Or(err1, err2); err != nil {
			panic(unfit(path, err))
		}
		return pair{first, second}
	}, opts...)
	return func() (T1, T2) {
		p := both()
		a, err1 := firsts.unpack(p.First)
		b, err2 := seconds.unpack(p.Second)
		if err := cmp.Or(err1, err2); err != nil {
			panic(&zksync.Error{Op: "once", Path: path, Err: unlike(err)})
		}
		return a, b
	}
}

// unfit is the value of the panic for a result that cannot be encoded as JSON.
func unfit(path string, err error) string {
	return fmt.Sprintf("zkonce: the result of %s cannot be kept: %v", path, err)
}

// unlike is the error for a kept result of another type.
func unlike(err error) error {
	return fmt.Errorf("%w: what is kept has another type: %w", zksync.ErrMisuse, err)
}
