package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance062IndicesAreAPermutationAndTheActionRunsOnceBeforeAnybodyLeaves(t *testing.T) {
	eachKind(t, func(t *testing.T, v *env, opts ...zksync.Option) {
		const parties = 5
		var runs, left atomic.Int32
		action := zkbarrier.WithAction(func(context.Context) error {
			<-time.After(20 * time.Millisecond)
			require.Zero(t, left.Load()%parties, "somebody left before the action had run")
			runs.Add(1)
			return nil
		})
		tolerant := len(opts) > 0
		if !tolerant {
			opts = append(opts, action)
		}
		bs := v.barriers(parties, opts...)
		for i := range 4 {
			var all []*awaiting
			for _, b := range bs {
				a := await(context.Background(), b)
				all = append(all, a)
				go func() { <-a.done; left.Add(1) }()
			}
			v.leave(all...)
			v.quiet()
			if !tolerant {
				require.EqualValues(t, i+1, runs.Load(), "runs of the action")
			}
			require.EqualValues(t, parties*(i+1), left.Load())
		}
		v.emptied()
	})
}

func TestAFailedActionBreaksTheBarrier(t *testing.T) {
	failure := errors.New("no disk")
	for name, action := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return failure },
		"panic": func(context.Context) error { panic(failure) },
	} {
		{
			t.Run(name, func(t *testing.T) {
				each(t, func(t *testing.T, v *env) {
					bs := v.barriers(3, zkbarrier.WithAction(action))
					others := awaitAll(context.Background(), bs[:2]...)
					v.gathered(bs[2], 2)
					last := await(context.Background(), bs[2])
					v.brokenFor(others...)
					v.awaits(last.done, "Await to return")
					if name == "panic" {
						require.Equal(t, failure, last.panicked)
					} else {
						require.ErrorIs(t, last.err, failure)
						require.NotErrorIs(t, last.err, zksync.ErrBroken)
					}
					v.broken(bs[0], true)
					v.emptied()
				})
			})
		}
	}
}

func TestAResetEndsTheContextOfAnActionThatRuns(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		running := make(chan struct{})
		bs := v.barriers(2, zkbarrier.WithAction(func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		all := awaitAll(context.Background(), bs...)
		v.awaits(running, "the action")
		require.NoError(t, bs[0].Reset(context.Background()))
		v.brokenFor(all...)
		v.emptied()
	})
}

func TestADeathOfWhoRunsTheActionBreaksTheBarrier(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		running := make(chan struct{}, 5)
		var told atomic.Value
		var ran atomic.Int32
		action := zkbarrier.WithAction(func(ctx context.Context) error {
			running <- struct{}{}
			if ran.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			told.Store(context.Cause(ctx))
			return ctx.Err()
		})
		s := v.session()
		bs := v.barriers(3, action)
		others := awaitAll(context.Background(), bs[:2]...)
		v.gathered(bs[2], 2)
		runner := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 3, action))
		v.awaits(running, "the action")
		v.expire(s)
		v.brokenFor(others...)
		v.brokenFor(runner)
		require.ErrorIs(t, runner.err, context.Canceled, "what the action said")
		require.ErrorIs(t, told.Load().(error), zksync.ErrLost)
		v.emptied()
	})
}

// Each of those who wait may die while the action runs, also the one next to the runner.
func TestADeathWhileTheActionRunsBreaksAStrictBarrier(t *testing.T) {
	for place := range 2 {
		t.Run(fmt.Sprint("place ", place), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				victim, kill := v.mortal()
				running := make(chan struct{})
				action := zkbarrier.WithAction(func(ctx context.Context) error {
					close(running)
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					return context.Cause(ctx)
				})
				bs := v.barriers(3, action)
				bs[place] = zkbarrier.NewBarrier(victim, barrierPath, 3, action)
				var all []*awaiting
				for i, b := range bs {
					all = append(all, await(context.Background(), b))
					if i < 2 {
						v.gathered(bs[2], i+1)
					}
				}
				v.awaits(running, "the action")
				start := time.Now()
				heal := kill()
				v.brokenFor(all[1-place], all[2])
				v.within(start, dying+100*time.Millisecond, "noticing the death")
				heal()
				v.brokenFor(all[place])
				v.emptied()
			})
		})
	}
}

func TestAPartyThatGivesUpWhileTheActionRuns(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var runs atomic.Int32
		action := zkbarrier.WithAction(func(ctx context.Context) error {
			runs.Add(1)
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		bs := v.barriers(3, action)
		patient := await(context.Background(), bs[0])
		v.gathered(bs[2], 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		other := await(ctx, bs[1])
		v.gathered(bs[2], 2)
		last := await(context.Background(), bs[2])
		v.inTime(func() bool { return runs.Load() == 1 })
		start := time.Now()
		cancel()
		v.awaits(other.done, "Await to return")
		require.ErrorIs(t, other.err, context.Canceled)
		v.atOnce(start, "giving up")
		v.brokenFor(patient, last)
		v.emptied()
	})
}

// One who has come too early for the next generation, and gives up, does no harm to the one whose action runs.
func TestAnExtraPartyThatGivesUpLeavesTheOthersInPeace(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		running, finish := make(chan struct{}, 2), make(chan struct{})
		bs := v.barriers(2, zkbarrier.WithAction(func(ctx context.Context) error {
			running <- struct{}{}
			select {
			case <-finish:
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}))
		both := awaitAll(context.Background(), bs...)
		v.awaits(running, "the action")
		ctx, cancel := context.WithTimeout(context.Background(), v.span(300*time.Millisecond, time.Second))
		defer cancel()
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.broken(bs[1], false)
		pause(t, v, 2*time.Second) // those who wait have looked around
		early := await(context.Background(), bs[0])
		v.quiet()
		close(finish)
		v.leave(both...)
		v.leave(early, await(context.Background(), bs[1]))
		v.emptied()
	})
}
