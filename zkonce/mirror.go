package zkonce

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// Do calls f if no process in the cluster has, and waits until the function has returned, in whichever
// process it runs. A function that panics counts as done, and Do panics only in the goroutine that ran it.
func (o *Once) Do(f func()) {
	if _, sure := o.made().known.Recall(); !sure {
		o.doOnce(f)
	}
}

// doOnce is not part of Do, so that a call of Do that has nothing to do allocates nothing.
func (o *Once) doOnce(f func()) {
	call := o.at.Call()
	var ran *outcome
	_, err := o.once(func() *outcome {
		if ran == nil {
			f()
			ran = new(outcome)
		}
		return ran
	}, func(any) {})
	call.End(o.at.Named("once", err))
}

// once keeps the outcome that run returns. If the lease is lost, or it is unknown whether the outcome is kept, it calls run
// again, which returns the same outcome. If run panics, once calls panicked before it keeps that.
func (o *Once) once(run func() *outcome, panicked func(v any)) (*outcome, error) {
	w := work{func(context.Context) (*outcome, error) { return run(), nil }, panicked}
	for pace := (node.Pace{}); ; {
		r, err := o.do(context.Background(), false, w)
		if !errors.Is(err, zksync.ErrLost) && !zksync.Ambiguous(err) {
			return r, err
		}
		_ = pace.Rest(context.Background(), nil)
	}
}

// OnceFunc is sync.OnceFunc with [Once.Do]. If f panics, the returned function panics on every call. Once f
// has run anywhere, a Reset does not change it.
func OnceFunc(s *zksync.Session, path string, f func(), opts ...zksync.Option) func() {
	m := newMirror(s, path, func() struct{} { f(); return struct{}{} }, opts)
	return func() { m.call() }
}

// OnceValue is sync.OnceValue: it returns f's own value in the process that ran f, and a copy from JSON
// elsewhere. Of an error the text is kept, like any other value: to try again after an error, use
// [Once.DoContext]. A value that JSON cannot encode counts as a panic of f.
func OnceValue[T any](s *zksync.Session, path string, f func() T, opts ...zksync.Option) func() T {
	m := newMirror(s, path, func() carried[T] { return carried[T]{f()} }, opts)
	m.o.at.Refuse(unfit[T]())
	return func() T { return m.call().v }
}

// OnceValues is [OnceValue] for two results, the second often an error.
func OnceValues[T1, T2 any](s *zksync.Session, path string, f func() (T1, T2), opts ...zksync.Option) func() (T1, T2) {
	m := newMirror(s, path, func() (b both[T1, T2]) { b.First.v, b.Second.v = f(); return b }, opts)
	m.o.at.Refuse(cmp.Or(unfit[T1](), unfit[T2]()))
	return func() (T1, T2) {
		b := m.call()
		return b.First.v, b.Second.v
	}
}
