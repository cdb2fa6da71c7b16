package once_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const (
	promisePath = "/promises/a"
	promiseBase = promisePath + "/zkonce.Promise"
)

// shard is a value that is promised.
type shard struct {
	Host string
	Port int
}

func promises(v *proving.Env, n int) []*zkonce.Promise[shard] {
	v.T.Helper()
	all := make([]*zkonce.Promise[shard], n)
	for i := range all {
		all[i] = zkonce.NewPromise[shard](v.Session(), promisePath)
	}
	return all
}

// promised is a Wait in a goroutine of its own.
type promised struct {
	*proving.Attempt
	value shard
}

func awaits(p *zkonce.Promise[shard]) *promised {
	a := &promised{}
	a.Attempt = proving.Waits(context.Background(), func(ctx context.Context) (err error) {
		a.value, err = p.Wait(ctx)
		return err
	})
	return a
}

func TestAPromiseIsCompletedOnceAndAllWhoWaitAreTold(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ps := promises(v, 4)
		waiting := []*promised{awaits(ps[0]), awaits(ps[0]), awaits(ps[1])}
		done := ps[2].Done()
		v.Quiet()
		require.False(t, proving.IsClosed(done))
		first, err := ps[3].Complete(ctx, shard{"db-1", 5432})
		require.NoError(t, err)
		require.True(t, first)
		for _, p := range append(ps, promises(v, 1)...) {
			v.Flush()
			first, err := p.Complete(ctx, shard{"db-2", 1})
			require.NoError(t, err)
			require.False(t, first)
			first, err = p.Fail(ctx, "too late")
			require.NoError(t, err)
			require.False(t, first)
			got, err := p.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, shard{"db-1", 5432}, got)
			v.Awaits(p.Done(), "Done")
		}
		for _, w := range waiting {
			v.Passes(w.Attempt)
			require.Equal(t, shard{"db-1", 5432}, w.value)
		}
		v.Awaits(done, "Done")
		v.NothingLeft(promiseBase, "writers")
	})
}

// Whoever asks without blocking is told what this object knows.
func TestThePromiseIsDoneForAnObjectThatKnowsItsFate(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ps := promises(v, 3)
		done := ps[0].Done()
		v.Quiet()
		_, err := ps[0].Complete(ctx, shard{"x", 1})
		require.NoError(t, err)
		require.True(t, proving.IsClosed(done))
		v.Flush()
		_, err = ps[1].Wait(ctx)
		require.NoError(t, err)
		require.True(t, proving.IsClosed(ps[1].Done()))

		s := v.Session()
		closed := zkonce.NewPromise[shard](s, promisePath)
		_, err = closed.Wait(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.True(t, proving.IsClosed(closed.Done()))
	})
}

func TestAllAreToldTheSameMessageOfAFailedPromise(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for _, p := range promises(v, 2) {
			_, err := p.Fail(context.Background(), "a\xff\xfeb")
			require.NoError(t, err)
			v.Flush()
			_, err = p.Wait(context.Background())
			require.EqualError(t, err, "zkonce: wait /promises/a: the promise has failed: a\uFFFDb")
		}
	})
}

func TestAFailedPromiseTellsWhy(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ps := promises(v, 2)
		w, done := awaits(ps[0]), ps[0].Done()
		first, err := ps[1].Fail(ctx, "no such host")
		require.NoError(t, err)
		require.True(t, first)
		v.Awaits(done, "Done")
		_, err = ps[1].Wait(ctx)
		for _, err := range []error{err, v.Failed(w.Attempt)} {
			var failure *zkonce.Failure
			require.ErrorAs(t, err, &failure)
			require.Equal(t, "no such host", failure.Message)
			require.EqualError(t, err, "zkonce: wait /promises/a: the promise has failed: no such host")
		}
		first, err = ps[0].Complete(ctx, shard{})
		require.NoError(t, err)
		require.False(t, first)
	})
}

func TestOfManyWhoCompleteAPromiseOneDoes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var firsts atomic.Int32
		var winner atomic.Value
		var all sync.WaitGroup
		for i, p := range promises(v, 5) {
			for range 4 {
				all.Go(func() {
					first, err := p.Complete(context.Background(), shard{fmt.Sprint(i), i})
					require.NoError(t, err)
					if first {
						firsts.Add(1)
						winner.Store(shard{fmt.Sprint(i), i})
					}
				})
			}
		}
		all.Wait()
		require.EqualValues(t, 1, firsts.Load())
		v.Flush()
		got, err := promises(v, 1)[0].Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, winner.Load(), got)
	})
}

func TestTheRequestsOfAPromise(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		promise := func() *zkonce.Promise[shard] {
			return zkonce.NewPromise[shard](proving.Calm(v), promisePath)
		}
		early, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := promise().Wait(early) // makes the nodes
		require.ErrorIs(t, err, context.DeadlineExceeded)

		a, b, c := promise(), promise(), promise()
		var waiting *promised
		v.Costs(1, func() { waiting = awaits(a) })
		v.Costs(1+1, func() {
			first, err := b.Complete(ctx, shard{"x", 1})
			require.True(t, first && err == nil)
			v.Passes(waiting.Attempt)
		}, "and one for who waits")
		v.Costs(0, func() { _, _ = a.Wait(ctx); _, _ = a.Complete(ctx, shard{}) }, "it knows")
		v.Costs(1, func() { _, _ = b.Wait(ctx) }, "it has decided it, and has no watch yet")
		v.Costs(0, func() { _, _ = b.Wait(ctx) })
		v.Costs(2, func() { _, err = c.Wait(ctx); require.NoError(t, err) })
		v.Costs(3, func() { _, err = promise().Complete(ctx, shard{}); require.NoError(t, err) }, "refused; a sync and a read tell who was first")
	})
}

// play completes a promise from two sessions at once while two others wait. Whatever happens to a request, exactly one call
// says that it was first, and its value is what all see.
func playPromise(v *proving.Env, name string, ps []*zkonce.Promise[shard]) {
	t := v.T
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	waiting := []*promised{awaits(ps[0]), awaits(ps[1])}
	firsts, all := make([]bool, 2), sync.WaitGroup{}
	for i := range firsts {
		all.Go(func() {
			var err error
			firsts[i], err = ps[2+i].Complete(ctx, shard{"x", i})
			require.NoError(t, err, name)
		})
	}
	all.Wait()
	require.NotEqual(t, firsts[0], firsts[1], name)
	want := shard{"x", 0}
	if firsts[1] {
		want.Port = 1
	}
	for _, w := range waiting {
		v.Passes(w.Attempt)
		require.Equal(t, want, w.value, name)
	}
	for _, p := range ps {
		got, err := p.Wait(ctx)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
}

func TestAcceptance141EveryFaultLeavesAPromiseSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ps := promises(v, 4)
		return func(name string) { playPromise(v, name, ps) }
	})
	for what, happen := range map[string]func(*proving.Env, int64){"disconnect": proving.Disconnects, "expire": proving.Expires} {
		proving.EveryTrouble(t, what, happen, func(t *testing.T, v *proving.Env) func(string, func()) {
			ps := promises(v, 4)
			return func(name string, _ func()) { playPromise(v, name, ps) }
		})
	}
}

// The answer to a Complete is lost, and its session ends. Before it can ask again, a Wait of the same object has learned what
// it has decided.
func TestACompleteThatHasDecidedSaysSoThoughAnotherCallLearnedItFirst(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p := zkonce.NewPromise[shard](s, promisePath)
		w := awaits(p)
		v.Quiet()
		v.Server.Intercept(zktest.On(zktest.Multi, promiseBase+"/pending").Of(s.ID()).LoseReply().Nth(1))
		v.Server.Intercept(zktest.On(zktest.Multi, promiseBase+"/pending").Of(s.ID()).Hold().Nth(2).Maybe())
		type answer struct {
			first bool
			err   error
		}
		told := make(chan answer, 1)
		go func() {
			first, err := p.Complete(context.Background(), shard{"x", 1})
			told <- answer{first, err}
		}()
		v.Passes(w.Attempt)
		v.Server.Expire(s.ID())
		require.Equal(t, answer{true, nil}, <-told)
	})
}

// A Complete that is cancelled says that its value may have been written, if it may.
func TestACancelledCompleteSaysWhetherItIsUnknown(t *testing.T) {
	for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate} {
		proving.EveryRequest(t, fmt.Sprintf("fate %v", fate), func(s *proving.Strike) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ps := promises(v, 2)
				w := awaits(ps[1])
				v.Quiet()
				cancelled, cancel := v.CancelledAt(s, fate)
				defer cancel()
				first, err := ps[0].Complete(cancelled, shard{"x", 1})
				v.Later()
				if !w.Pending() {
					require.NoError(t, w.Err)
					require.True(t, first && err == nil || zksync.Ambiguous(err), "%s: %v", s.Name, err)
				}
				second, err := ps[1].Complete(context.Background(), shard{"x", 2})
				require.NoError(t, err, s.Name)
				require.Equal(t, w.value.Port == 2 || w.Pending(), second, s.Name)
			})
		})
	}
}

func TestAPromiseRefusesMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		_, err := zkonce.NewPromise[func()](s, promisePath).Complete(ctx, func() {})
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zkonce.NewPromise[string](s, promisePath).Complete(ctx, strings.Repeat("x", 1<<20))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zkonce.NewPromise[string](s, promisePath).Fail(ctx, strings.Repeat("x", 1<<20))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		for _, bad := range []*zkonce.Promise[string]{
			zkonce.NewPromise[string](nil, promisePath), zkonce.NewPromise[string](s, "a"), zkonce.NewPromise[string](s, promisePath, zksync.WithAsyncUnlock()),
		} {
			_, err = bad.Wait(ctx)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			_, err = bad.Complete(ctx, "x")
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
		first, err := zkonce.NewPromise[string](s, promisePath, zksync.WithCodec(zksync.Raw)).Complete(ctx, "\xff raw")
		require.NoError(t, err)
		require.True(t, first)
		raw, err := zkonce.NewPromise[[]byte](s, promisePath, zksync.WithCodec(zksync.Raw)).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "\xff raw", string(raw))
		_, err = zkonce.NewPromise[int](s, promisePath).Wait(ctx)
		require.ErrorContains(t, err, promiseBase)
	})
}

func TestAcceptance160AOnceAndAPromiseAreDifferentThings(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		_, err := zkonce.NewPromise[int](s, "/a/promise").Complete(ctx, 1)
		require.NoError(t, err)
		once := zkonce.New(s, "/a/promise")
		_, err = once.DoContext(ctx, func(context.Context) ([]byte, error) { t.Error("it was called"); return nil, nil })
		refuses(t, err, "/a/promise", "zkonce", "zkonce.Promise")
		_, err = once.IsDone(ctx)
		refuses(t, err, "/a/promise", "zkonce", "zkonce.Promise")

		zkonce.New(s, "/a/once").Do(func() {})
		promise := zkonce.NewPromise[int](s, "/a/once")
		_, err = promise.Complete(ctx, 1)
		refuses(t, err, "/a/once", "zkonce.Promise", "zkonce")
		_, err = promise.Wait(ctx)
		refuses(t, err, "/a/once", "zkonce.Promise", "zkonce")
	})
}

func refuses(t *testing.T, err error, path, asked, found string) {
	t.Helper()
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, fmt.Sprintf("that of a %s, not of a %s;", found, asked))
}

func TestAPromiseThatIsRemovedByHandIsBroken(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ps := promises(v, 2)
		w := awaits(ps[0])
		v.Quiet()
		v.Remove(promiseBase + "/pending")
		require.ErrorIs(t, v.Failed(w.Attempt), zksync.ErrBroken)
		_, err := ps[1].Complete(context.Background(), shard{})
		require.ErrorIs(t, err, zksync.ErrBroken)
	})
}

func TestAWaitForAPromiseEnds(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p := zkonce.NewPromise[shard](s, promisePath)
		limited, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := p.Wait(limited)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, errors.As(err, new(*zkonce.Failure)))
		v.Took(start, 500*time.Millisecond, "Wait")
		w, done := awaits(p), p.Done()
		v.Quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(w.Attempt), zksync.ErrClosed)
		require.False(t, proving.IsClosed(done))
	})
}

func TestTheLongestValueAndMessageOfAPromiseFitIntoOneRequest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, s, other := context.Background(), v.Session(), v.Session()
		long := strings.Repeat("x", 700<<10)
		first, err := zkonce.NewPromise[string](s, "/promises/value", zksync.WithCodec(zksync.Raw)).Complete(ctx, long)
		require.True(t, first && err == nil, "%v", err)
		message := strings.Repeat("\x01", 64<<10)
		first, err = zkonce.NewPromise[string](s, "/promises/message").Fail(ctx, message)
		require.True(t, first && err == nil, "%v", err)
		v.Flush()
		got, err := zkonce.NewPromise[string](other, "/promises/value", zksync.WithCodec(zksync.Raw)).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, long, got)
		_, err = zkonce.NewPromise[string](other, "/promises/message").Wait(ctx)
		var failure *zkonce.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, message, failure.Message)
	})
}

// undecided are n promises at paths of their own, whose Done was called.
func undecided(s *zksync.Session, n int) (ps []*zkonce.Promise[int], all []<-chan struct{}) {
	for i := range n {
		p := zkonce.NewPromise[int](s, fmt.Sprintf("/promises/%d", i))
		ps, all = append(ps, p), append(all, p.Done())
	}
	return ps, all
}

func TestUndecidedPromisesKeepNoGoroutine(t *testing.T) {
	const n = 1000
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		v.Quiet()
		before := v.Goroutines()
		ps, done := undecided(s, n)
		v.Quiet()
		require.Equal(t, before, v.Goroutines())
		require.Equal(t, n, v.Server.Watches())

		again := zkonce.NewPromise[int](s, "/promises/7")
		v.Costs(0, func() {
			for range 100 {
				require.True(t, again.Done() == done[7] && ps[7].Done() == done[7], "all objects share a wait")
				zkonce.NewPromise[int](s, "/promises/8").Done()
			}
			v.Quiet()
		})
		v.Costs(0, func() { time.Sleep(s.Timeout() / 10) }, "nor is anything asked")

		for name, happen := range map[string]func(){
			"disconnect": func() { v.Server.Disconnect(s.ID()) }, "expire": func() { v.Server.Expire(s.ID()) }, "restart": v.Server.Restart,
		} {
			happen()
			v.Later()
			require.LessOrEqual(t, v.Goroutines(), before+2, name)
			require.Equal(t, n, v.Server.Watches(), name)
		}
		heal := v.Server.Partition(s.ID())
		time.Sleep(2 * s.Timeout())
		require.LessOrEqual(t, v.Goroutines(), before+20, "a few wait for a connection")
		for i := range n {
			_, err := zkonce.NewPromise[int](other, fmt.Sprintf("/promises/%d", i)).Complete(t.Context(), i)
			require.NoError(t, err)
		}
		heal()
		for i, d := range done {
			v.Awaits(d, "Done")
			got, err := ps[i].Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, i, got)
		}
		require.True(t, proving.IsClosed(again.Done()))
		v.Quiet()
		require.Equal(t, n, v.Server.Watches(), "one of each that an object knows decided")
		require.NoError(t, s.Close())
		v.Quiet()
		require.Zero(t, v.Server.Watches())
	})
}

func TestADecisionClosesDoneForOneReadWhileOthersAreUndecided(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		s, other := proving.Calm(v), proving.Calm(v)
		_, done := undecided(s, 20)
		v.Quiet()
		p := zkonce.NewPromise[int](other, "/promises/3")
		v.Costs(2, func() {
			_, err := p.Complete(t.Context(), 3)
			require.NoError(t, err)
			v.Awaits(done[3], "Done")
		}, "the decision, and a read")
		for i, d := range done {
			require.Equal(t, i == 3, proving.IsClosed(d))
		}
	})
}

func TestNothingIsLeftOfUndecidedPromisesAfterClose(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		before := v.Goroutines()
		s := v.Session()
		ps, done := undecided(s, 100)
		v.Quiet()
		require.NoError(t, s.Close())
		v.GoroutinesBack(before)
		require.Zero(t, v.Server.Watches())
		for i, d := range done {
			require.False(t, proving.IsClosed(d))
			require.True(t, ps[i].Done() == d)
		}
		v.GoroutinesBack(before)
	})
}

// The promise is removed and made again by others: what was returned before hears of the next wait.
func TestDoneGoesOnAfterTheNodesOfAPromiseWereRemoved(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := promises(v, 1)[0]
		done := p.Done()
		v.Quiet()
		v.Remove(promiseBase + "/pending")
		v.Later()
		require.False(t, proving.IsClosed(done))
		v.Server.DeleteAll(promiseBase)
		require.True(t, p.Done() == done)
		v.Quiet()
		_, err := promises(v, 1)[0].Complete(t.Context(), shard{"x", 1})
		require.NoError(t, err)
		v.Awaits(done, "Done")
	})
}

func TestEveryFaultLeavesDoneSound(t *testing.T) {
	play := func(v *proving.Env, name string, ps []*zkonce.Promise[shard]) {
		one, two := ps[0].Done(), ps[1].Done()
		time.Sleep(time.Second)
		_, err := ps[2].Complete(context.Background(), shard{"x", 1})
		require.NoError(v.T, err, name)
		v.Awaits(one, name)
		v.Awaits(two, name)
	}
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ps := promises(v, 3)
		return func(name string) { play(v, name, ps) }
	})
	for what, happen := range map[string]func(*proving.Env, int64){"disconnect": proving.Disconnects, "expire": proving.Expires} {
		proving.EveryTrouble(t, what, happen, func(t *testing.T, v *proving.Env) func(string, func()) {
			ps := promises(v, 3)
			return func(name string, _ func()) { play(v, name, ps) }
		})
	}
}

// The session moves to a server that has not heard of the promise, and then to one that has not heard of the decision.
func TestDoneIsClosedOnServersThatLag(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		catchUp := e.Lag(0)
		other := zkonce.NewPromise[int](e.SessionAt(t, 2), "/promises/a")
		otherDone := other.Done()
		time.Sleep(time.Second)
		done := zkonce.NewPromise[int](s, "/promises/a").Done()
		time.Sleep(time.Second)
		also := e.Lag(1)
		first, err := other.Complete(t.Context(), 1)
		require.NoError(t, err)
		require.True(t, first)
		require.True(t, proving.IsClosed(otherDone))
		e.Expire(s.ID())
		time.Sleep(time.Second)
		catchUp()
		also()
		time.Sleep(10 * time.Second)
		require.True(t, proving.IsClosed(done))
	})
}

// A session has seen that the promise is undecided, with a look. The next one begins at a server that does not know the promise.
func TestDoneGoesOnInASessionThatBeginsAtAServerThatLags(t *testing.T) {
	proving.AmongMembers(t, 4, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		other := zkonce.NewPromise[int](e.SessionAt(t, 3), "/promises/a")
		s := e.SessionAt(t, 1)
		catchUp := e.Lag(0)
		look := e.Intercept(zktest.On(zktest.GetData, "/promises/a/zkonce.Promise").Of(s.ID()).Hold().Nth(1))
		done := zkonce.NewPromise[int](s, "/promises/a").Done()
		require.NoError(t, look.WaitHeld(t.Context()))
		other.Done()
		time.Sleep(time.Second)
		look.Release()
		time.Sleep(time.Second)
		proving.RenewAtLagging(t, e, s)
		catchUp()
		time.Sleep(10 * time.Second)
		_, err := other.Complete(t.Context(), 1)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.True(t, proving.IsClosed(done))
	})
}
