package zkonce

import (
	"cmp"
	"context"
	"errors"
	"reflect"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// Do calls f if and only if no process in the cluster has, and waits until the function has returned, in whichever
// process it runs. As with sync.Once, a function that panics counts as done, and Do panics only in the goroutine that
// ran it. Unlike with sync.Once, a function that calls runtime.Goexit does not count, and the next caller runs it.
//
// It blocks without a bound, through disconnects and lost sessions. If the session is closed meanwhile, it never returns.
// It panics with a *zksync.Error if the session was closed before, the path is malformed, or the servers refuse for good. It costs the requests of DoContext.
//
// Do calls f once at most, also if the lease is lost while f runs. Then another process may run its function
// at the same time: see the package comment. A panic of f waits for the servers a second at most; it counts if the
// session can write it before the lease ends.
func (o *Once) Do(f func()) {
	if o.made().learned() == nil {
		o.doOnce(f)
	}
}

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
	call.End(o.wrap("once", err))
}

// once keeps the outcome that run returns. If the lease is lost, or it is unknown whether
// the outcome is kept, it calls run again, which returns the same outcome. If run panics, once calls panicked before it keeps that.
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

// OnceFunc returns a function that calls f if and only if no process in the cluster has: like sync.OnceFunc,
// with [Once.Do]. If f panics, the returned function panics on every call: with the same value if it called f
// itself, otherwise with the text of that value. Once f has run anywhere, the returned function lets f go, its calls cost no
// request, and a Reset does not change it.
func OnceFunc(s *zksync.Session, path string, f func(), opts ...zksync.Option) func() {
	m := newMirror(s, path, func() struct{} { f(); return struct{}{} }, pack, unpack, opts)
	return func() { m.call() }
}

// OnceValue returns a function that returns the result of f, in whichever process of the cluster f ran: like
// sync.OnceValue. A returned function that ran f itself returns f's value, every other one a copy, which it decodes once. The value is
// kept as JSON. Of an error its text is kept, like any other value: to try again after an error, use
// [Once.DoContext]. The function panics like [Once.Do] and, if f panicked, like that of [OnceFunc].
//
// A type T that JSON cannot carry (a channel, a function, a struct without exported fields) is zksync.ErrMisuse before f runs.
// A value that turns out not to be JSON, for example a NaN, counts as a panic of f.
func OnceValue[T any](s *zksync.Session, path string, f func() T, opts ...zksync.Option) func() T {
	m := newMirror(s, path, f, pack, unpack, opts)
	m.o.at.Refuse(unfit(reflect.TypeFor[T]()))
	return m.call
}

// OnceValues is OnceValue for two results, like sync.OnceValues. The second result often is an error.
func OnceValues[T1, T2 any](s *zksync.Session, path string, f func() (T1, T2), opts ...zksync.Option) func() (T1, T2) {
	run := func() (b both[T1, T2]) { b.first, b.second = f(); return b }
	m := newMirror(s, path, run, packBoth, unpackBoth, opts)
	m.o.at.Refuse(cmp.Or(unfit(reflect.TypeFor[T1]()), unfit(reflect.TypeFor[T2]())))
	return func() (T1, T2) {
		b := m.call()
		return b.first, b.second
	}
}
