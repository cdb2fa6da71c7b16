package recipes_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

const oncePath = "/once/migration"

func (v *env) onces(n int) []*zkonce.Once {
	v.t.Helper()
	all := make([]*zkonce.Once, n)
	for i := range all {
		all[i] = zkonce.New(v.session(), oncePath)
	}
	return all
}

func TestOfManyOneRunsAndAllGetItsResult(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var runs atomic.Int32
		var all sync.WaitGroup
		for _, o := range v.onces(5) {
			for range 3 {
				all.Go(func() {
					value, err := o.DoContext(context.Background(), func(ctx context.Context) ([]byte, error) {
						runs.Add(1)
						require.True(t, zkonce.Lease(ctx).Valid())
						<-time.After(20 * time.Millisecond)
						return []byte("v1"), nil
					})
					require.NoError(t, err)
					require.Equal(t, "v1", string(value))
				})
			}
		}
		all.Wait()
		require.EqualValues(t, 1, runs.Load())
		v.onces(1)[0].Do(func() { t.Error("it has been done") })
		v.queued(oncePath+"/lock", 0)
	})
}

func TestAnErrorLetsTheNextOneRun(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		os := v.onces(2)
		bad := errors.New("disk full")
		_, err := os[0].DoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, bad })
		require.ErrorIs(t, err, bad)
		v.flush()
		done, err := os[1].Done(context.Background())
		require.NoError(t, err)
		require.False(t, done)
		value, err := os[1].DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte{}, nil })
		require.NoError(t, err)
		require.Empty(t, value)
		v.flush()
		done, err = os[0].Done(context.Background())
		require.NoError(t, err)
		require.True(t, done)
	})
}

func TestTheDeathOfTheRunnerLetsTheNextOneRun(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		first := zkonce.New(dying, oncePath)
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := first.DoContext(context.Background(), func(ctx context.Context) ([]byte, error) {
				close(began)
				<-ctx.Done()
				return []byte("stale"), nil // it does not care
			})
			ended <- err
		}()
		<-began
		heal := v.srv.Partition(dying.ID())
		value, err := v.onces(1)[0].DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte("fresh"), nil })
		require.NoError(t, err)
		require.Equal(t, "fresh", string(value))
		heal()
		require.ErrorIs(t, <-ended, zksync.ErrLost)
		value, err = first.DoContext(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, "fresh", string(value))
	})
}

func TestTheMirrorRunsOnceInItsProcessThoughItsLeaseIsLost(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		o := zkonce.New(s, oncePath)
		runs := 0
		o.Do(func() {
			runs++
			v.srv.Expire(s.ID())
			time.Sleep(time.Second)
		})
		o.Do(func() { runs++ })
		require.Equal(t, 1, runs)
		done, err := v.onces(1)[0].Done(context.Background())
		require.NoError(t, err)
		require.True(t, done)
	})
}

func TestAPanicCountsAsDone(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		os := v.onces(2)
		require.PanicsWithValue(t, "boom", func() { os[0].Do(func() { panic("boom") }) })
		os[1].Do(func() { t.Error("it has been done") })
		f := zkonce.OnceValue(v.session(), "/once/b", func() int { panic(7) })
		require.PanicsWithValue(t, 7, func() { f() })
		require.PanicsWithValue(t, 7, func() { f() })
		g := zkonce.OnceValue(v.session(), "/once/b", func() int { return 1 })
		require.PanicsWithValue(t, "7", func() { g() })
	})
}

func TestOnceValuesTravel(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		type config struct{ Shards int }
		make1 := func(n int) func() (config, string) {
			return zkonce.OnceValues(v.session(), "/once/c", func() (config, string) { return config{n}, "by one" })
		}
		a, b := make1(16), make1(32)
		c, by := a()
		require.Equal(t, config{16}, c)
		require.Equal(t, "by one", by)
		c, _ = b()
		require.Equal(t, config{16}, c)
	})
}

// The commonest of all OnceValues return an error as their second result.
func TestAnErrorTravelsAsItsTextAndIsItselfWhereItWasReturned(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		broken := errors.New("no such file")
		here := zkonce.OnceValues(v.session(), "/once/c", func() (int, error) { return 3, broken })
		elsewhere := zkonce.OnceValues(v.session(), "/once/c", func() (int, error) { return 4, nil })
		for range 2 {
			n, err := here()
			require.Equal(t, 3, n)
			require.Same(t, broken, err)
			n, err = elsewhere()
			require.Equal(t, 3, n)
			require.EqualError(t, err, "no such file")
		}
		fine := func() func() (int, error) {
			return zkonce.OnceValues(v.session(), "/once/d", func() (int, error) { return 5, nil })
		}
		for _, f := range []func() (int, error){fine(), fine()} {
			n, err := f()
			require.Equal(t, 5, n)
			require.NoError(t, err)
		}
		alone := func() func() error { return zkonce.OnceValue(v.session(), "/once/e", func() error { return broken }) }
		require.Same(t, broken, alone()())
		require.EqualError(t, alone()(), "no such file")
		other := zkonce.OnceValue(v.session(), "/once/e", func() int { return 1 })
		require.PanicsWithError(t, `zksync: once /once/e: misuse: what is kept has another type: `+
			`json: cannot unmarshal string into Go value of type int`, func() { other() })
	})
}

func TestAfterAResetItRunsAgainAndEverybodyHearsOfIt(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		os := v.onces(2)
		n := 0
		run := func(o *zkonce.Once) string {
			value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
				n++
				return []byte{byte('0' + n)}, nil
			})
			require.NoError(t, err)
			return string(value)
		}
		require.Equal(t, "1", run(os[0]))
		require.Equal(t, "1", run(os[1]))
		require.NoError(t, os[0].Reset(context.Background()))
		require.NoError(t, os[0].Reset(context.Background()), "again")
		v.quiet()
		require.Equal(t, "2", run(os[1]))
		require.Equal(t, "2", run(os[0]))
	})
}

func TestAResultThatIsKnownCostsNoRequest(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		o := zkonce.New(calm(v), oncePath)
		o.Do(func() {})
		o.Do(func() {})
		v.costs(0, func() {
			for range 10 {
				o.Do(func() {})
			}
		})
	})
}

func TestAWaiterForTheResultObeysItsDeadline(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		os := v.onces(2)
		began, finish := make(chan struct{}), make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() {
			os[0].Do(func() { close(began); <-finish })
		})
		<-began
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := os[1].DoContext(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.took(start, 300*time.Millisecond, "DoContext")
		close(finish)
		running.Wait()
	})
}

// Every request of two who ask is struck once with every fault.
func TestEveryFaultLeavesTheOnceSound(t *testing.T) {
	everyFault(t, func(t *testing.T, v *env) func(string) {
		os := v.onces(2)
		return func(name string) {
			var runs atomic.Int32
			var all sync.WaitGroup
			for _, o := range os {
				all.Go(func() {
					value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
						runs.Add(1)
						return []byte("x"), nil
					})
					require.NoError(t, err, name)
					require.Equal(t, "x", string(value), name)
				})
			}
			all.Wait()
			require.EqualValues(t, 1, runs.Load(), name)
			v.later()
			require.Empty(t, v.srv.Children(oncePath+"/lock"), name)
		}
	})
}

// Unlike with sync.Once: while a goroutine ends nothing can be kept for the cluster. It must not keep the lock either.
func TestAFunctionThatEndsItsGoroutineIsRunByTheNext(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		os := v.onces(2)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			os[0].Do(runtime.Goexit)
			t.Error("it goes on")
		}()
		v.awaits(ended, "the end of the goroutine")
		runs := 0
		os[1].Do(func() { runs++ })
		os[0].Do(func() { runs++ })
		require.Equal(t, 1, runs)
		v.queued(oncePath+"/lock", 0)
	})
}

// What WithACL says holds for all nodes.
func TestAResultHasTheACLOfItsOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s, acl := v.session(), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)
		_, err := zkonce.New(s, "/o/x", zksync.WithACL(acl...)).DoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, nil })
		require.NoError(t, err)
		got, _, err := s.Conn().GetACL("/o/x/result")
		require.NoError(t, err)
		assert.Equal(t, acl, got)
	})
}
