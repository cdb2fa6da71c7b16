package zkonce_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func connected(t testing.TB) *zksync.Session {
	t.Helper()
	srv := zktest.Start()
	t.Cleanup(func() { srv.Close() })
	s, err := zksync.Connect(context.Background(), srv.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// As with sync: a call of a function that is done allocates nothing, in the process that ran it and in others.
func TestAFunctionThatIsDoneAllocatesNothing(t *testing.T) {
	s, other := connected(t), connected(t)
	for _, in := range []*zksync.Session{s, other} {
		once := zkonce.New(in, "/once/a")
		nothing := func() {}
		once.Do(nothing)
		once.Do(nothing) // the first call after the run reads the result
		f := zkonce.OnceFunc(in, "/once/b", func() {})
		g := zkonce.OnceValue(in, "/once/c", func() *int { return new(int) })
		h := zkonce.OnceValues(in, "/once/d", func() ([]string, error) { return []string{"x"}, nil })
		for name, call := range map[string]func(){"Do": func() { once.Do(nothing) }, "OnceFunc": f, "OnceValue": func() { g() }, "OnceValues": func() { h() }} {
			require.Zero(t, testing.AllocsPerRun(100, call), name)
		}
	}
}

// What f refers to can be collected once it has run, here or elsewhere, or has panicked.
func TestAFunctionThatIsDoneIsLetGo(t *testing.T) {
	s := connected(t)
	for name, make1 := range map[string]func(use func()) func(){
		"OnceFunc":  func(use func()) func() { return zkonce.OnceFunc(s, "/once/a", use) },
		"elsewhere": func(use func()) func() { return zkonce.OnceFunc(s, "/once/b", use) },
		"OnceValue": func(use func()) func() {
			f := zkonce.OnceValue(s, "/once/c", func() int { use(); return 1 })
			return func() { f() }
		},
		"OnceValues": func(use func()) func() {
			f := zkonce.OnceValues(s, "/once/d", func() (int, error) { use(); return 1, nil })
			return func() { f() }
		},
		"panic": func(use func()) func() {
			f := zkonce.OnceFunc(s, "/once/e", func() { use(); panic("x") })
			return func() { defer func() { _ = recover() }(); f() }
		},
	} {
		zkonce.OnceFunc(s, "/once/b", func() {})()
		f, held := func() (func(), weak.Pointer[[1024]byte]) {
			buf := new([1024]byte)
			return make1(func() { buf[0] = 1 }), weak.Make(buf)
		}()
		runtime.GC()
		require.True(t, held.Value() != nil, name)
		f()
		runtime.GC()
		require.True(t, held.Value() == nil, name)
		f()
	}
}

func BenchmarkDone(b *testing.B) {
	s := connected(b)
	f := zkonce.OnceFunc(s, "/once/a", func() {})
	g := zkonce.OnceValue(s, "/once/b", func() int { return 1 })
	o := zkonce.New(s, "/once/c")
	for name, call := range map[string]func(){"OnceFunc": f, "OnceValue": func() { g() }, "Do": func() { o.Do(func() {}) }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			call()
			call()
			for b.Loop() {
				call()
			}
		})
	}
}
