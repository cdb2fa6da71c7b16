package atomic_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

type config struct {
	Name string
	Size int
}

func TestAValueIsStoredComparedUpdatedAndDeleted(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		x := zkatomic.NewValue[config](v.Session(), path)
		is := func(want config, there bool) {
			t.Helper()
			got, ok, err := x.Load(ctx)
			require.NoError(t, err)
			require.Equal(t, there, ok)
			require.Equal(t, want, got)
		}
		is(config{}, false)
		require.NoError(t, x.Delete(ctx))
		is(config{}, false)
		_, ok, err := x.Swap(ctx, config{"a", 1})
		require.NoError(t, err)
		require.False(t, ok)
		is(config{"a", 1}, true)
		require.Equal(t, `{"Name":"a","Size":1}`, v.Data(values+"/value"))
		old, ok, err := x.Swap(ctx, config{"b", 2})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, config{"a", 1}, old)
		for _, want := range []bool{true, false} {
			swapped, err := x.CompareAndSwap(ctx, config{"b", 2}, config{"c", 3})
			require.NoError(t, err)
			require.Equal(t, want, swapped)
		}
		is(config{"c", 3}, true)
		require.NoError(t, x.Delete(ctx))
		is(config{}, false)
		swapped, err := x.CompareAndSwap(ctx, config{}, config{"d", 4})
		require.NoError(t, err)
		require.False(t, swapped, "no value is equal to none")
		got, err := x.Update(ctx, func(old config, ok bool) (config, error) {
			assert.False(t, ok)
			return config{"e", old.Size + 1}, nil
		})
		require.NoError(t, err)
		require.Equal(t, config{"e", 1}, got)
		_, err = x.Update(ctx, func(config, bool) (config, error) { return config{"f", 2}, proving.ErrTest })
		require.Equal(t, proving.ErrTest, err, "as it is")
		is(config{"e", 1}, true)
		require.NoError(t, x.Store(ctx, config{}))
		is(config{}, true)
	})
}

func TestTheRequestsOfAValue(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		v.Put(path, "")
		x := zkatomic.NewValue[string](proving.Calm(v), path)
		v.Costs(3, func() { _, _, err := x.Load(ctx); require.NoError(t, err) }, "nobody has used the path")
		v.Costs(4, func() { require.NoError(t, x.Store(ctx, "a")) })
		v.Costs(1, func() { require.NoError(t, x.Store(ctx, "b")) })
		v.Costs(1, func() { _, _, err := x.Load(ctx); require.NoError(t, err) })
		v.Costs(1, func() {
			_, err := x.Update(ctx, func(s string, _ bool) (string, error) { return s + s, nil })
			require.NoError(t, err)
		})
		v.Costs(1, func() { require.NoError(t, x.Delete(ctx)) })
		v.Costs(1, func() { require.NoError(t, x.Delete(ctx)) }, "the servers are asked whether there is still none")
		other := zkatomic.NewValue[string](proving.Calm(v), path)
		v.Costs(2, func() { require.NoError(t, other.Store(ctx, "c")) })
	})
}

func TestUpdatesOfSeveralSessionsAreNotLost(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		var all sync.WaitGroup
		for i := range 5 {
			x := zkatomic.NewValue[[]string](v.Session(), path)
			for j := range 2 {
				all.Go(func() {
					for k := range 5 {
						_, err := x.Update(ctx, func(old []string, _ bool) ([]string, error) {
							return append(old, fmt.Sprint(i, j, k)), nil
						})
						assert.NoError(t, err)
					}
				})
			}
		}
		all.Wait()
		v.Flush()
		got, _, err := zkatomic.NewValue[[]string](v.Session(), path).Load(ctx)
		require.NoError(t, err)
		seen := make(map[string]bool)
		for _, s := range got {
			seen[s] = true
		}
		require.Len(t, got, 50)
		require.Len(t, seen, 50)
	})
}

func TestAFunctionOfAnUpdateMayUseTheValueAndEndTheSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		x := zkatomic.NewValue[int](s, path)
		times := 0
		got, err := x.Update(ctx, func(old int, _ bool) (int, error) {
			if times++; times == 1 {
				require.NoError(t, x.Store(ctx, 10))
			}
			return old + 1, nil
		})
		require.NoError(t, err)
		require.Equal(t, 11, got)
		require.Equal(t, 2, times)
		_, err = x.Update(ctx, func(int, bool) (int, error) { return 0, s.Close() })
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

func TestAValueThatCannotBeDecodedIsToldAndReplaced(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		x := zkatomic.NewValue[int](s, path)
		require.NoError(t, zkatomic.NewValue[string](s, path, zksync.WithCodec(zksync.Raw)).Store(ctx, "no number"))
		_, _, err := x.Load(ctx)
		require.ErrorContains(t, err, values+"/value")
		_, err = x.Update(ctx, func(int, bool) (int, error) { return 1, nil })
		require.ErrorContains(t, err, values+"/value")
		require.NoError(t, x.Store(ctx, 3))
		n, ok, err := x.Load(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 3, n)

		y := zkatomic.NewInt64(s, path+"/n")
		require.NoError(t, y.Store(ctx, 1))
		v.Server.Set(path+"/n/zkatomic.Int64/value", []byte("x"))
		_, err = y.Add(ctx, 1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

// watched is a watch under way.
type watched struct {
	seen []zkatomic.Snapshot[int]
	done chan struct{}
}

func watch(t *testing.T, x *zkatomic.Value[int], last int) *watched {
	w := &watched{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		defer close(w.done)
		for s, err := range x.Watch(ctx) {
			if !assert.NoError(t, err) {
				return
			}
			if w.seen = append(w.seen, s); s.OK && s.Value == last {
				return
			}
		}
	}()
	return w
}

// accounts checks that the versions grow, and that what was skipped accounts for all of them.
func (w *watched) accounts(t *testing.T) {
	t.Helper()
	require.Zero(t, w.seen[0].Skipped)
	for i, s := range w.seen[1:] {
		require.Equal(t, w.seen[i].Version+1+int64(s.Skipped), s.Version)
		require.Greater(t, s.Version, w.seen[i].Version)
		if w.seen[i].OK {
			require.Greater(t, s.Value, w.seen[i].Value, "it went back")
		}
	}
}

func TestAcceptance134AWatcherSeesEveryChangeInOrderOrIsToldHowManyItSkipped(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		x, y := zkatomic.NewValue[int](v.Session(), path), zkatomic.NewValue[int](v.Session(), path)
		w := watch(t, y, 60)
		v.Quiet()
		for i := 1; i <= 60; i++ {
			if i == 20 {
				v.Server.Stop()
				go func() { time.Sleep(2 * time.Second); v.Server.Restart() }()
			}
			require.NoError(t, x.Store(ctx, i))
			if i <= 10 {
				v.Quiet()
				require.Len(t, w.seen, i+1, "each one")
			}
		}
		v.Awaits(w.done, "the watch to see the last value")
		w.accounts(t)
	})
}

func TestAcceptance143AWatchNeverGoesBackThroughARestartAndANewSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		x, y := zkatomic.NewValue[int](v.Session(zksync.WithTimeout(time.Minute)), path), zkatomic.NewValue[int](s, path)
		w := watch(t, y, 40)
		for i := 1; i <= 40; i++ {
			require.NoError(t, x.Store(ctx, i))
			switch i {
			case 10:
				v.Server.Expire(s.ID())
			case 20:
				v.Server.Stop()
				time.AfterFunc(3*time.Second, v.Server.Restart)
			case 30:
				v.Server.Expire(s.ID())
				v.Server.Disconnect(s.ID())
			}
			time.Sleep(100 * time.Millisecond)
		}
		v.Awaits(w.done, "the watch to see the last value")
		w.accounts(t)
	})
}

// The server of the watcher lags behind when its session ends, and it goes to the next one, which does, too.
func TestAcceptance143AWatchDoesNotGoBackOnServersThatLag(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := context.Background()
		x := zkatomic.NewValue[int](e.SessionAt(t, 2, zksync.WithTimeout(10*time.Second)), path)
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		y := zkatomic.NewValue[int](s, path)
		require.NoError(t, x.Store(ctx, 1))
		w := watch(t, y, 99)
		time.Sleep(time.Second)
		catchUp := e.Lag(1)
		require.NoError(t, x.Store(ctx, 2))
		time.Sleep(time.Second)
		synctest.Wait() // after it what the watcher has written may be read
		require.Equal(t, 2, w.seen[len(w.seen)-1].Value)
		also := e.Lag(0)
		require.NoError(t, x.Store(ctx, 3))
		e.Expire(s.ID())
		time.Sleep(time.Second)
		catchUp()
		also()
		time.Sleep(10 * time.Second)
		got, _, err := y.Load(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, got)
		require.NoError(t, x.Store(ctx, 99))
		<-w.done
		w.accounts(t)
	})
}

func TestAWatchOfWhatIsDeletedStoredRemovedAndMadeAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		x, y := zkatomic.NewValue[int](v.Session(), path), zkatomic.NewValue[int](v.Session(), path)
		w := watch(t, y, 5)
		v.Quiet()
		step := func(f func() error) {
			require.NoError(t, f())
			v.Quiet()
		}
		step(func() error { return x.Store(ctx, 1) })
		step(func() error { return x.Delete(ctx) })
		step(func() error { return x.Store(ctx, 2) })
		v.Server.DeleteAll(values)
		v.Quiet()
		step(func() error { return x.Store(ctx, 3) })
		step(func() error { return x.Store(ctx, 5) })
		v.Awaits(w.done, "5")
		var b strings.Builder
		for _, s := range w.seen {
			fmt.Fprintf(&b, "%d/%t/%d/%d ", s.Value, s.OK, s.Version, s.Skipped)
		}
		require.Equal(t, "0/false/0/0 1/true/1/0 0/false/2/0 2/true/3/0 0/false/0/0 3/true/1/0 5/true/2/0 ", b.String())
	})
}

func TestAWatchEndsWithItsContextItsSessionAndItsLoop(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		x := zkatomic.NewValue[int](s, path)
		last := func(ctx context.Context) (err error) {
			for _, err = range x.Watch(ctx) {
			}
			return err
		}
		ctx, start := proving.Soon(t)
		require.ErrorIs(t, last(ctx), context.DeadlineExceeded)
		v.Took(start, proving.Deadline, "the watch")
		for range x.Watch(context.Background()) {
			break
		}
		v.Quiet()
		require.Zero(t, v.Server.WatchesOn(values+"/value"))
		a := proving.Waits(context.Background(), last)
		v.Quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
	})
}
