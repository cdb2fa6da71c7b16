package once_test

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

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

func onces(v *proving.Env, n int) []*zkonce.Once {
	v.T.Helper()
	all := make([]*zkonce.Once, n)
	for i := range all {
		all[i] = zkonce.New(v.Session(), proving.OncePath)
	}
	return all
}

func TestOfManyOneRunsAndAllGetItsResult(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var runs atomic.Int32
		var all sync.WaitGroup
		for _, o := range onces(v, 5) {
			for range 3 {
				all.Go(func() {
					value, err := o.DoContext(context.Background(), func(ctx context.Context) ([]byte, error) {
						runs.Add(1)
						require.True(t, zksync.LeaseFrom(ctx).Valid())
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
		onces(v, 1)[0].Do(func() { t.Error("it has been done") })
		v.Queued(proving.OncePath+"/lock", 0)
	})
}

func TestAnErrorLetsTheNextOneRun(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		os := onces(v, 2)
		bad := errors.New("disk full")
		_, err := os[0].DoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, bad })
		require.ErrorIs(t, err, bad)
		v.Flush()
		done, err := os[1].IsDone(context.Background())
		require.NoError(t, err)
		require.False(t, done)
		value, err := os[1].DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte{}, nil })
		require.NoError(t, err)
		require.Empty(t, value)
		v.Flush()
		done, err = os[0].IsDone(context.Background())
		require.NoError(t, err)
		require.True(t, done)
	})
}

func TestTheDeathOfTheRunnerLetsTheNextOneRun(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dying := v.Session()
		first := zkonce.New(dying, proving.OncePath)
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
		heal := v.Server.Partition(dying.ID())
		value, err := onces(v, 1)[0].DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte("fresh"), nil })
		require.NoError(t, err)
		require.Equal(t, "fresh", string(value))
		heal()
		err = <-ended
		require.ErrorIs(t, err, zksync.ErrLost)
		require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
		value, err = first.DoContext(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, "fresh", string(value))
	})
}

func TestTheMirrorRunsOnceInItsProcessThoughItsLeaseIsLost(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		o := zkonce.New(s, proving.OncePath)
		runs := 0
		o.Do(func() {
			runs++
			v.Server.Expire(s.ID())
			time.Sleep(time.Second)
		})
		o.Do(func() { runs++ })
		require.Equal(t, 1, runs)
		done, err := onces(v, 1)[0].IsDone(context.Background())
		require.NoError(t, err)
		require.True(t, done)
	})
}

func TestAPanicCountsAsDone(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		os := onces(v, 2)
		require.PanicsWithValue(t, "boom", func() { os[0].Do(func() { panic("boom") }) })
		os[1].Do(func() { t.Error("it has been done") })
		f := zkonce.OnceValue(v.Session(), "/once/b", func() int { panic(7) })
		require.PanicsWithValue(t, 7, func() { f() })
		require.PanicsWithValue(t, 7, func() { f() })
		g := zkonce.OnceValue(v.Session(), "/once/b", func() int { return 1 })
		require.PanicsWithValue(t, "7", func() { g() })
	})
}

func TestOnceValuesTravel(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		type config struct{ Shards int }
		make1 := func(n int) func() (config, string) {
			return zkonce.OnceValues(v.Session(), "/once/c", func() (config, string) { return config{n}, "by one" })
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
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		broken := errors.New("no such file")
		here := zkonce.OnceValues(v.Session(), "/once/c", func() (int, error) { return 3, broken })
		elsewhere := zkonce.OnceValues(v.Session(), "/once/c", func() (int, error) { return 4, nil })
		for range 2 {
			n, err := here()
			require.Equal(t, 3, n)
			require.Same(t, broken, err)
			n, err = elsewhere()
			require.Equal(t, 3, n)
			require.EqualError(t, err, "no such file")
		}
		fine := func() func() (int, error) {
			return zkonce.OnceValues(v.Session(), "/once/d", func() (int, error) { return 5, nil })
		}
		for _, f := range []func() (int, error){fine(), fine()} {
			n, err := f()
			require.Equal(t, 5, n)
			require.NoError(t, err)
		}
		alone := func() func() error { return zkonce.OnceValue(v.Session(), "/once/e", func() error { return broken }) }
		require.Same(t, broken, alone()())
		require.EqualError(t, alone()(), "no such file")
		other := zkonce.OnceValue(v.Session(), "/once/e", func() int { return 1 })
		require.PanicsWithError(t, `zkonce: once /once/e: what is kept has another type: `+
			`json: cannot unmarshal string into Go value of type int: misuse`, func() { other() })
	})
}

func TestAfterAResetItRunsAgainAndEverybodyHearsOfIt(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		os := onces(v, 2)
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
		v.Quiet()
		require.Equal(t, "2", run(os[1]))
		require.Equal(t, "2", run(os[0]))
	})
}

func TestAResultThatIsKnownCostsNoRequest(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		o := zkonce.New(proving.Calm(v), proving.OncePath)
		o.Do(func() {})
		o.Do(func() {})
		v.Costs(0, func() {
			for range 10 {
				o.Do(func() {})
			}
		})
	})
}

func TestAWaiterForTheResultObeysItsDeadline(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		os := onces(v, 2)
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
		v.Took(start, 300*time.Millisecond, "DoContext")
		close(finish)
		running.Wait()
	})
}

// Every request of two who ask is struck once with every fault.
func TestEveryFaultLeavesTheOnceSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		os := onces(v, 2)
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
			v.Later()
			require.Empty(t, v.Server.Children(proving.OncePath+"/lock"), name)
		}
	})
}

// Unlike with sync.Once: while a goroutine ends nothing can be kept for the cluster. It must not keep the lock either.
func TestAFunctionThatEndsItsGoroutineIsRunByTheNext(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		os := onces(v, 2)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			os[0].Do(runtime.Goexit)
			t.Error("it goes on")
		}()
		v.Awaits(ended, "the end of the goroutine")
		runs := 0
		os[1].Do(func() { runs++ })
		os[0].Do(func() { runs++ })
		require.Equal(t, 1, runs)
		v.Queued(proving.OncePath+"/lock", 0)
	})
}

// What WithACL says holds for all nodes.
func TestAResultHasTheACLOfItsOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, acl := v.Session(), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)
		_, err := zkonce.New(s, "/o/x", zksync.WithACL(acl...)).DoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, nil })
		require.NoError(t, err)
		got, _, err := s.Conn().GetACL("/o/x/result")
		require.NoError(t, err)
		assert.Equal(t, acl, got)
	})
}

// The path is looked at, then the outcome is looked for, in vain; then queue, look again, watch the own node, write, leave.
func TestAOnceIsSevenRequestsAndTwoWhereItIsDone(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.OncePath+"/lock", "")
		o := zkonce.New(proving.Calm(v), proving.OncePath)
		do := func(o *zkonce.Once) func() {
			return func() {
				value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
					v.Quiet() // until its own node is watched
					return []byte("x"), nil
				})
				require.NoError(t, err)
				require.Equal(t, "x", string(value))
			}
		}
		v.Costs(1+6, do(o), "the first look at the path")
		v.Costs(1, do(o), "it learns the result, with a watch")
		v.Costs(0, do(o))
		v.Costs(1+1, do(zkonce.New(proving.Calm(v), proving.OncePath)))
	})
}

// The first attempt to queue tells that the directory is missing. Making that tells that its parent is missing, too.
func TestTheFirstUseOfAOnceIsElevenRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put("/once", "")
		o := zkonce.New(proving.Calm(v), "/once/new")
		v.Costs(1+6+4, func() {
			_, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
				v.Quiet() // until its own node is watched
				return nil, nil
			})
			require.NoError(t, err)
		})
	})
}
