package flight_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Every request of three who ask while the first runs is struck once with every fault.
func TestEveryFaultLeavesTheFlightSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		fs := flights(v, 3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var runs atomic.Int32
			inside := proving.Section{}
			var all sync.WaitGroup
			for i, f := range fs {
				all.Go(func() {
					time.Sleep(time.Duration(i) * 100 * time.Millisecond)
					value, err, _ := f.Do(ctx, flightKey, func(context.Context) (string, error) {
						inside.Pass()
						time.Sleep(time.Second)
						runs.Add(1)
						return "x", nil
					})
					require.NoError(t, err, name)
					require.Equal(t, "x", value, name)
				})
			}
			all.Wait()
			require.EqualValues(t, 1, runs.Load(), name)
			v.Later()
			require.Empty(t, v.Server.Children(flightLock), name)
			value, err, shared := fs[2].Do(ctx, flightKey, says("y"))
			require.NoError(t, err, name)
			require.Equal(t, "y", value, name)
			require.False(t, shared, name)
		}
	})
}

// The same, while the key is forgotten in the middle.
func TestEveryFaultLeavesAForgottenFlightSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		fs := flights(v, 3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			old, fresh := newGate("old"), newGate("new")
			first := asks(ctx, fs[0], old.run)
			v.Awaits(old.began, "the function")
			require.NoError(t, fs[1].Forget(ctx, flightKey), name)
			second := asks(ctx, fs[1], fresh.run)
			time.Sleep(time.Minute)
			third := asks(ctx, fs[2], v.Never)
			time.Sleep(time.Minute)
			close(old.finish)
			v.Awaits(first.done, name)
			require.NoError(t, first.err, name)
			require.Equal(t, "old", first.value, name)
			v.Awaits(fresh.began, name)
			close(fresh.finish)
			for _, p := range []*trip{second, third} {
				v.Awaits(p.done, name)
				require.NoError(t, p.err, name)
				require.Equal(t, "new", p.value, name)
			}
			v.Later()
			require.Empty(t, v.Server.Children(flightLock), name)
		}
	})
}

// flightBlows are faults that may cost the run its lease, so it may have to be run again.
func flightBlows() map[string]func(v *proving.Env, q *zktest.Request) zktest.Verdict {
	return map[string]func(v *proving.Env, q *zktest.Request) zktest.Verdict{
		"expire": func(v *proving.Env, q *zktest.Request) zktest.Verdict {
			v.Server.Expire(q.Session)
			return zktest.Verdict{}
		},
		"disconnect": func(v *proving.Env, q *zktest.Request) zktest.Verdict {
			v.Server.Disconnect(q.Session)
			return zktest.Verdict{}
		},
		"partition for 3s": func(v *proving.Env, q *zktest.Request) zktest.Verdict {
			time.AfterFunc(3*time.Second, v.Server.Partition(q.Session))
			return zktest.Verdict{}
		},
		"partition for a minute": func(v *proving.Env, q *zktest.Request) zktest.Verdict {
			time.AfterFunc(time.Minute, v.Server.Partition(q.Session))
			return zktest.Verdict{}
		},
		"hold for 5s": func(*proving.Env, *zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: 5 * time.Second} },
		"restart":     func(v *proving.Env, _ *zktest.Request) zktest.Verdict { go v.Server.Restart(); return zktest.Verdict{} },
		"an error once": func(*proving.Env, *zktest.Request) zktest.Verdict {
			return zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeMarshalling}
		},
		"expired, it says": func(*proving.Env, *zktest.Request) zktest.Verdict {
			return zktest.Verdict{Fate: zktest.Fail, Code: -112}
		},
	}
}

// Whatever befalls one request, everybody finishes; only whose lease was lost gets an error,
// and there is one run for each lease.
func TestEveryBlowLeavesTheFlightSound(t *testing.T) {
	for name, blow := range flightBlows() {
		proving.EveryRequest(t, name, func(s *proving.Strike) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				name := s.Name
				fs := flights(v, 3)
				v.Quiet()
				calm := s.Falls(v.Server, func(q *zktest.Request) zktest.Verdict { return blow(v, q) })
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
				defer cancel()
				var runs, lost atomic.Int32
				var all sync.WaitGroup
				for i, f := range fs {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						value, err, _ := f.Do(ctx, flightKey, func(ctx context.Context) (string, error) {
							runs.Add(1)
							select {
							case <-time.After(time.Second):
							case <-ctx.Done():
							}
							return "x", nil
						})
						require.Equal(t, "x", value, name)
						if err != nil {
							require.ErrorIs(t, err, zksync.ErrLost, name)
							lost.Add(1)
						}
					})
				}
				all.Wait()
				// A caller whose wait was cut off comes again.
				require.LessOrEqual(t, runs.Load(), lost.Load()+2, name)
				require.LessOrEqual(t, lost.Load(), int32(1), name)
				v.Later()
				require.Empty(t, v.Server.Children(flightLock), name)
				calm()
				value, err, shared := fs[2].Do(ctx, flightKey, says("y"))
				require.NoError(t, err, name)
				require.Equal(t, "y", value, name)
				require.False(t, shared, name)
			})
		})
	}
}

// One of them gives up, at every request in turn.
func TestGivingUpAtAnyRequestLeavesTheFlightSound(t *testing.T) {
	for who := range 3 {
		proving.EveryRequest(t, fmt.Sprintf("%d gives up", who), func(s *proving.Strike) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				name := s.Name
				fs := flights(v, 3)
				v.Quiet()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
				defer cancel()
				his, giveUp := context.WithCancel(ctx)
				defer giveUp()
				s.Falls(v.Server, func(*zktest.Request) zktest.Verdict { giveUp(); return zktest.Verdict{} })
				var all sync.WaitGroup
				for i, f := range fs {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						ctx := ctx
						if i == who {
							ctx = his
						}
						value, err, _ := f.Do(ctx, flightKey, func(ctx context.Context) (string, error) {
							select {
							case <-time.After(time.Second):
								return "x", nil
							case <-ctx.Done():
								return "", ctx.Err()
							}
						})
						if err != nil {
							require.Equal(t, who, i, name)
							require.ErrorIs(t, err, context.Canceled, name)
							return
						}
						require.Equal(t, "x", value, name)
					})
				}
				all.Wait()
				v.Quiet()
				require.Empty(t, v.Server.Children(flightLock), name)
			})
		})
	}
}

// The answer to the write of a result is lost, and it is written again when others have had it already.
func TestAResultThatIsWrittenAgainIsNotForWhoCameInBetween(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 3)
		old, fresh := newGate("old"), newGate("new")
		first := asks(context.Background(), fs[0], old.run)
		v.Awaits(old.began, "the function")
		second := asks(context.Background(), fs[1], v.Never)
		v.Settled(flightLock, 2)
		time.Sleep(time.Second) // it listens
		v.Server.Intercept(zktest.On(zktest.SetData, flightDir).Nth(1).LoseReply())
		again := v.Server.Intercept(zktest.On(zktest.SetData, flightDir).Nth(2).Hold())
		close(old.finish)
		gets(v, second, "old", true)
		third := asks(context.Background(), fs[2], fresh.run)
		v.Settled(flightLock, 2)
		again.Release()
		gets(v, first, "old", true)
		v.Awaits(fresh.began, "the function of the one who came later")
		close(fresh.finish)
		gets(v, third, "new", false)
	})
}

// The result is written, and its runner hears nothing of that before its lease is lost.
func TestARunnerWhoseResultOthersHaveIsNotToldThatNobodyHas(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs, s := flights(v, 1), v.Session()
		g, first := runs(v, zkflight.New[string](s, flightPath), "x")
		second := asks(context.Background(), fs[0], v.Never)
		v.Settled(flightLock, 2)
		time.Sleep(time.Second) // it listens
		cut := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && slices.Equal(q.Paths[1:], []string{flightDir}) {
				v.Server.Partition(s.ID())
				return zktest.Verdict{Fate: zktest.LoseReply}
			}
			return zktest.Verdict{}
		})
		defer cut()
		close(g.finish)
		gets(v, second, "x", true)
		v.Awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrLost)
		require.True(t, zksync.Ambiguous(first.err), first.err)
		require.Equal(t, "x", first.value)
	})
}
