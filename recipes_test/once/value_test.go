package once_test

import (
	"bytes"
	"context"
	"math"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// handle has something that JSON does not carry.
type handle struct {
	Name string
	open *bytes.Buffer
}

// The process that ran f gets what f returned. Each other one gets one decoded value, the same at each call.
func TestTheProcessThatRanAFunctionGetsItsValueItself(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		made := &handle{"db-1", new(bytes.Buffer)}
		f := func() *handle { return made }
		here, elsewhere := zkonce.OnceValue(v.Session(), "/once/v", f), zkonce.OnceValue(v.Session(), "/once/v", f)
		require.Same(t, made, here())
		require.Same(t, made, here())
		copied := elsewhere()
		require.Equal(t, &handle{Name: "db-1"}, copied)
		require.Same(t, copied, elsewhere())

		both := func() func() (*handle, error) {
			return zkonce.OnceValues(v.Session(), "/once/w", func() (*handle, error) { return made, nil })
		}
		runs, gets := both(), both()
		for range 2 {
			h, err := runs()
			require.NoError(t, err)
			require.Same(t, made, h)
		}
		h, err := gets()
		require.NoError(t, err)
		again, _ := gets()
		require.Same(t, h, again)
	})
}

// The lease is lost after f has run, and another process keeps its result first: that one is for all.
func TestAValueThatAnotherProcessKeptFirstIsForTheRunnerToo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		other := zkonce.OnceValue(v.Session(), "/once/v", func() string { return "theirs" })
		f := zkonce.OnceValue(s, "/once/v", func() string {
			heal := v.Server.Partition(s.ID())
			require.Equal(t, "theirs", other())
			heal()
			return "ours"
		})
		require.Equal(t, "theirs", f())
		require.Equal(t, "theirs", f())
	})
}

// Goroutines that call at the same time while the lease is lost: f runs once in the process, and all get its value.
func TestAFunctionRunsOnceInItsProcessForAllItsCallers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		runs := 0
		f := zkonce.OnceValue(s, "/once/v", func() *int {
			runs++
			v.Server.Expire(s.ID())
			time.Sleep(time.Second)
			return &runs
		})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { require.Same(t, &runs, f()) })
		}
		all.Wait()
		require.Equal(t, 1, runs)
	})
}

// misused calls f, which must panic with ErrMisuse.
func misused(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		err, ok := recover().(error)
		require.True(t, ok, "%s is not refused", name)
		require.ErrorIs(t, err, zksync.ErrMisuse, name)
	}()
	f()
}

func refused[T any](v *proving.Env, name string) {
	v.T.Helper()
	run := func() (x T) { v.T.Errorf("%s: f ran", name); return x }
	misused(v.T, name, func() { zkonce.OnceValue(v.Session(), "/once/v", run)() })
	misused(v.T, name, func() { zkonce.OnceValues(v.Session(), "/once/v", func() (int, T) { return 0, run() })() })
	misused(v.T, name, func() { zkonce.OnceValues(v.Session(), "/once/v", func() (T, error) { return run(), nil })() })
}

func taken[T any](v *proving.Env, path string, x T) {
	v.T.Helper()
	require.Equal(v.T, x, zkonce.OnceValue(v.Session(), path, func() T { return x })())
	require.Equal(v.T, x, zkonce.OnceValue(v.Session(), path, func() (no T) { v.T.Error("f ran"); return no })())
}

func TestATypeThatCannotBeKeptIsRefusedBeforeTheFunctionRuns(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		refused[chan int](v, "chan")
		refused[func()](v, "func")
		refused[complex128](v, "complex")
		refused[map[handle]int](v, "key")
		refused[struct{ Done chan int }](v, "field")
		refused[struct{ In struct{ Done chan int } }](v, "field of a field")
		require.False(t, v.Exists("/once/v"), "no request is sent")

		type tree struct {
			Name string
			Kids []tree
			Done chan int `json:"-"`
			Next *struct{ F func() }
		}
		taken(v, "/once/a", tree{Name: "a", Kids: []tree{{Name: "b"}}})
		taken(v, "/once/b", time.Unix(1, 0).UTC())
		taken(v, "/once/c", &url.URL{Scheme: "http", Host: "a"})
		taken(v, "/once/d", map[int]string{1: "x"})
		taken[any](v, "/once/e", "x")
		taken[error](v, "/once/f", nil)
		taken(v, "/once/g", struct{}{})
		taken(v, "/once/h", []byte("x"))
		taken(v, "/once/i", &handle{Name: "x"})
		type dash struct {
			//lint:ignore SA5008 JSON calls this field "-"
			N int `json:"-,"`
		}
		taken(v, "/once/j", dash{1})
	})
}

// The type does not say that it cannot be kept: f has run, and that counts.
func TestAValueThatCannotBeKeptCountsAsAPanic(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		nan := func() func() float64 { return zkonce.OnceValue(v.Session(), "/once/v", math.NaN) }
		f, g := nan(), nan()
		const text = "zkonce: the result of /once/v cannot be kept: json: unsupported value: NaN"
		for range 2 {
			require.PanicsWithValue(t, text, func() { f() })
			require.PanicsWithValue(t, text, func() { g() })
		}
	})
}

// A value is refused after f has run: f does not run again, in this process.
func TestAValueThatIsTooLargeIsRefusedAtEachCall(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		runs := 0
		f := zkonce.OnceValue(v.Session(), "/once/v", func() string { runs++; return strings.Repeat("x", 800<<10) })
		for range 2 {
			misused(t, "too large", func() { f() })
		}
		require.Equal(t, 1, runs)
	})
}

func origin() { panic("boom") }

// A panic goes on up the stack of f, so that its traceback names f.
func TestAPanicKeepsItsTraceback(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for name, run := range map[string]func(){
			"Do":         func() { zkonce.New(v.Session(), "/once/a").Do(origin) },
			"OnceFunc":   zkonce.OnceFunc(v.Session(), "/once/b", origin),
			"OnceValue":  func() { zkonce.OnceValue(v.Session(), "/once/c", func() int { origin(); return 1 })() },
			"OnceValues": func() { zkonce.OnceValues(v.Session(), "/once/d", func() (int, error) { origin(); return 1, nil })() },
			"DoContext": func() {
				_, _ = zkonce.New(v.Session(), "/once/e").DoContext(context.Background(), func(context.Context) ([]byte, error) { origin(); return nil, nil })
			},
		} {
			func() {
				defer func() {
					require.Equal(t, "boom", recover(), name)
					require.Contains(t, string(debug.Stack()), "once_test.origin", name)
				}()
				run()
			}()
		}
	})
}

// The servers are away: the panic does not wait for them longer than an Unlock. The session writes it when they are back.
func TestAPanicDoesNotWaitForServersThatAreAway(t *testing.T) {
	for name, run := range map[string]func(s *zksync.Session, f func()){
		"Do":       func(s *zksync.Session, f func()) { zkonce.New(s, "/once/v").Do(f) },
		"OnceFunc": func(s *zksync.Session, f func()) { zkonce.OnceFunc(s, "/once/v", f)() },
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			start := time.Now()
			require.PanicsWithValue(t, "boom", func() {
				run(v.Session(), func() {
					v.Server.Stop()
					start = time.Now()
					time.AfterFunc(3*time.Second, v.Server.Restart)
					panic("boom")
				})
			}, name)
			require.Equal(t, time.Second, time.Since(start), name)
			zkonce.New(v.Session(), "/once/v").Do(func() { t.Error(name, "it has been done") })
		})
	}
}

// Neither a loss of the lease nor servers that refuse hide the panic.
func TestAPanicIsTheCallersWhateverBecomesOfItsLease(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		f := zkonce.OnceFunc(s, "/once/v", func() {
			v.Server.Expire(s.ID())
			time.Sleep(time.Second)
			panic("boom")
		})
		for range 2 {
			require.PanicsWithValue(t, "boom", f)
		}
		v.Server.Intercept(zktest.On(zktest.Create, "/once/w/result").Times(1).Error(-102))
		g := zkonce.OnceFunc(s, "/once/w", func() { panic("bang") })
		for range 2 {
			require.PanicsWithValue(t, "bang", g)
		}
		h := zkonce.OnceFunc(s, "/once/x", func() { require.NoError(t, s.Close()); panic("bye") })
		for range 2 {
			require.PanicsWithValue(t, "bye", h)
		}
	})
}
