package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance062IndicesAreAPermutationAndTheActionRunsOnceBeforeAnybodyLeaves(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const parties = 5
		var runs, left atomic.Int32
		action := zkbarrier.WithAction(func(context.Context) error {
			<-time.After(20 * time.Millisecond)
			require.Zero(t, left.Load()%parties, "somebody left before the action had run")
			runs.Add(1)
			return nil
		})
		bs := barriers(v, parties, action)
		for i := range 4 {
			var all []*awaiting
			for _, b := range bs {
				a := await(context.Background(), b)
				all = append(all, a)
				go func() { <-a.done; left.Add(1) }()
			}
			leave(v, all...)
			v.Quiet()
			require.EqualValues(t, i+1, runs.Load(), "runs of the action")
			require.EqualValues(t, parties*(i+1), left.Load())
		}
		emptied(v)
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
				proving.Each(t, func(t *testing.T, v *proving.Env) {
					bs := barriers(v, 3, zkbarrier.WithAction(action))
					others := awaitAll(context.Background(), bs[:2]...)
					gathered(v, bs[2], 2)
					last := await(context.Background(), bs[2])
					brokenFor(v, others...)
					v.Awaits(last.done, "Await to return")
					if name == "panic" {
						require.Equal(t, failure, last.panicked)
					} else {
						require.ErrorIs(t, last.err, failure)
						require.NotErrorIs(t, last.err, zksync.ErrBroken)
					}
					broken(v, bs[0], true)
					emptied(v)
				})
			})
		}
	}
}

func TestAResetEndsTheContextOfAnActionThatRuns(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		running := make(chan struct{})
		bs := barriers(v, 2, zkbarrier.WithAction(func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		all := awaitAll(context.Background(), bs...)
		v.Awaits(running, "the action")
		require.NoError(t, bs[0].Reset(context.Background()))
		brokenFor(v, all...)
		emptied(v)
	})
}

func TestADeathOfWhoRunsTheActionBreaksTheBarrier(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
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
		s := v.Session()
		bs := barriers(v, 3, action)
		others := awaitAll(context.Background(), bs[:2]...)
		gathered(v, bs[2], 2)
		runner := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 3, action))
		v.Awaits(running, "the action")
		v.Expire(s)
		brokenFor(v, others...)
		brokenFor(v, runner)
		require.ErrorIs(t, runner.err, context.Canceled, "what the action said")
		require.ErrorIs(t, told.Load().(error), zksync.ErrLost)
		emptied(v)
	})
}

// Each of those who wait may die while the action runs, also the one next to the runner.
func TestADeathWhileTheActionRunsBreaksAStrictBarrier(t *testing.T) {
	proving.Together(t)
	for place := range 2 {
		t.Run(fmt.Sprint("place ", place), func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				victim, kill := mortal(v)
				running := make(chan struct{})
				action := zkbarrier.WithAction(func(ctx context.Context) error {
					close(running)
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					return context.Cause(ctx)
				})
				bs := barriers(v, 3, action)
				bs[place] = zkbarrier.NewBarrier(victim, proving.BarrierPath, 3, action)
				var all []*awaiting
				for i, b := range bs {
					all = append(all, await(context.Background(), b))
					if i < 2 {
						gathered(v, bs[2], i+1)
					}
				}
				v.Awaits(running, "the action")
				start := time.Now()
				heal := kill()
				brokenFor(v, all[1-place], all[2])
				v.Within(start, dying+100*time.Millisecond, "noticing the death")
				heal()
				brokenFor(v, all[place])
				emptied(v)
			})
		})
	}
}

func TestAPartyThatGivesUpWhileTheActionRuns(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
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
		bs := barriers(v, 3, action)
		patient := await(context.Background(), bs[0])
		gathered(v, bs[2], 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		other := await(ctx, bs[1])
		gathered(v, bs[2], 2)
		last := await(context.Background(), bs[2])
		inTime(v, func() bool { return runs.Load() == 1 })
		start := time.Now()
		cancel()
		v.Awaits(other.done, "Await to return")
		require.ErrorIs(t, other.err, context.Canceled)
		v.AtOnce(start, "giving up")
		brokenFor(v, patient, last)
		emptied(v)
	})
}

// One who has come too early for the next generation, and gives up, does no harm to the one whose action runs.
func TestAnExtraPartyThatGivesUpLeavesTheOthersInPeace(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		running, finish := make(chan struct{}, 2), make(chan struct{})
		bs := barriers(v, 2, zkbarrier.WithAction(func(ctx context.Context) error {
			running <- struct{}{}
			select {
			case <-finish:
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}))
		both := awaitAll(context.Background(), bs...)
		v.Awaits(running, "the action")
		ctx, cancel := context.WithTimeout(context.Background(), v.Span(300*time.Millisecond, time.Second))
		defer cancel()
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		broken(v, bs[1], false)
		proving.Pause(t, v, 2*time.Second) // those who wait have looked around
		early := await(context.Background(), bs[0])
		v.Quiet()
		close(finish)
		leave(v, both...)
		leave(v, early, await(context.Background(), bs[1]))
		emptied(v)
	})
}

// It has got no answer, so it does not know that the others are enough without it.
func TestAnExtraPartyWithoutAnAnswerLeavesTheOthersInPeace(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		running, finish := make(chan struct{}, 1), make(chan struct{})
		bs := barriers(v, 2, zkbarrier.WithAction(func(context.Context) error {
			running <- struct{}{}
			<-finish
			return nil
		}))
		s := v.Session()
		extra := zkbarrier.NewBarrier(s, proving.BarrierPath, 2)
		both := awaitAll(context.Background(), bs...)
		v.Awaits(running, "the action")
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold())
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := extra.Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Later()
		broken(v, bs[1], false)
		close(finish)
		leave(v, both...)
	})
}

// A goroutine that watches while the action runs copies the call after a pause of a second.
func TestAnActionThatFailsWhileItsWatcherBegins(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		failure := errors.New("no disk")
		bs := barriers(v, 2, zkbarrier.WithAction(func(context.Context) error {
			time.Sleep(990 * time.Millisecond)
			v.Server.Intercept(zktest.On(zktest.Multi, "**").DelayReply(20 * time.Millisecond).Times(1))
			return failure
		}))
		first := await(context.Background(), bs[0])
		gathered(v, bs[1], 1)
		last := await(context.Background(), bs[1])
		v.Awaits(last.done, "Await")
		require.ErrorIs(t, last.err, failure)
		v.Awaits(first.done, "Await")
		require.ErrorIs(t, first.err, zksync.ErrBroken)
	})
}

func TestAnActionThatEndsAsItsWatcherBegins(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 2, zkbarrier.WithAction(func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}))
		for range 20 {
			first := await(context.Background(), bs[0])
			gathered(v, bs[1], 1)
			last := await(context.Background(), bs[1])
			v.Awaits(last.done, "Await")
			require.NoError(t, last.err)
			v.Awaits(first.done, "Await")
			require.NoError(t, first.err)
		}
	})
}
