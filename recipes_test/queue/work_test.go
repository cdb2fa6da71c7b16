package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// working is a Work in a goroutine of its own, until the test ends it.
func working[T any](t *testing.T, q *zkqueue.Queue[T], n int, f func(context.Context, *zkqueue.Delivery[T]) error, opts ...zkqueue.WorkOption) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Work(ctx, n, f, opts...) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// letters are the dead letters of a queue.
func letters[T any](t *testing.T, q *zkqueue.Queue[T]) (all []zkqueue.DeadElement) {
	t.Helper()
	for d, err := range q.Dead().All(t.Context()) {
		require.NoError(t, err)
		all = append(all, d)
	}
	n, err := q.Dead().Len(t.Context())
	require.NoError(t, err)
	require.Len(t, all, n)
	return all
}

func TestAcceptance166WorkHandlesManyElementsAtATime(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](proving.Calm(v), path)
		const n, elements = 4, 40
		values := make([]int, elements)
		for i := range values {
			values[i] = i
		}
		require.NoError(t, q.PutAll(t.Context(), values))
		var now, done atomic.Int32
		var seen [elements]atomic.Int32
		var tooMany atomic.Bool
		all, reached := context.WithCancel(t.Context()) // ends when n are handled at a time: a slow server brings them one after the other
		defer reached()
		stop := working(t, q, n, func(ctx context.Context, d *zkqueue.Delivery[int]) error {
			switch now := now.Add(1); {
			case now == n:
				reached()
			case now > n:
				tooMany.Store(true)
			}
			select {
			case <-all.Done():
			case <-ctx.Done():
			}
			time.Sleep(20 * time.Millisecond) // for what is too much to show
			seen[d.Value].Add(1)
			now.Add(-1)
			done.Add(1)
			return ctx.Err()
		})
		v.Eventually(func() bool { return done.Load() == elements }, "the work")
		require.NoError(t, stop())
		require.False(t, tooMany.Load())
		for i := range seen {
			require.EqualValues(t, 1, seen[i].Load())
		}
		require.Zero(t, length(t, q))
		require.Empty(t, letters(t, q))
	})
}

// The goroutines share one listing. What the element of a delivery costs is its read, its claim and its end.
func TestAcceptance166AnElementOfWorkCostsThreeRequests(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		q := zkqueue.New[int](s, path)
		const elements = 200
		require.NoError(t, q.PutAll(t.Context(), make([]int, elements)))
		done := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		requests := v.Counted(func() {
			require.NoError(t, q.Work(ctx, 8, func(context.Context, *zkqueue.Delivery[int]) error {
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if done++; done == elements-16 { // so that there is an element for each goroutine until the end
					cancel()
				}
				return nil
			}))
		})
		left := length(t, q)
		require.Positive(t, left)
		require.LessOrEqual(t, requests, 3*(elements-left)+4+2*8, "three for each and one listing; and what each goroutine was about to receive when the context ended")
	})
}

// An attempt that fails writes once: the element again, with its delay. No consumer lists for that.
func TestAcceptance167ABackOffCostsOneWrite(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](proving.Calm(v), path)
		const elements = 100
		require.NoError(t, q.PutAll(t.Context(), make([]int, elements)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		v.Costs(3*elements+4+1, func() {
			require.NoError(t, q.Work(ctx, 1, func(_ context.Context, d *zkqueue.Delivery[int]) error {
				if calls++; calls == elements {
					cancel()
				}
				time.Sleep(time.Millisecond)
				if calls <= elements/2 {
					return errors.New("it fails")
				}
				return nil
			}, zkqueue.WithBackOff(time.Hour, time.Hour)))
		}, "three for each, one listing, and the leader's time once: it is known for a minute")
		require.Equal(t, elements/2, length(t, q))
	})
}

func TestAcceptance167AnElementThatFailsComesAgainLaterAndLaterAndIsThenADeadLetter(t *testing.T) {
	for name, fails := range map[string]func() error{
		"it cannot be done":                  func() error { return errors.New("it cannot be done") },
		"panic: no more":                     func() error { panic("no more") },
		"the function called runtime.Goexit": func() error { runtime.Goexit(); return nil },
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			q := zkqueue.New[string](v.Session(), path)
			start := time.Now().Truncate(time.Millisecond)
			time.Sleep(time.Until(start.Add(time.Second)))
			require.NoError(t, q.PutAll(t.Context(), []string{"bad", "good"}))
			var at []time.Duration
			var attempts []int
			var id string
			good := 0
			stop := working(t, q, 1, func(_ context.Context, d *zkqueue.Delivery[string]) error {
				if d.Value == "good" {
					good++
					return nil
				}
				id = d.ID()
				at, attempts = append(at, time.Since(start)), append(attempts, d.Attempt)
				return fails()
			}, zkqueue.WithBackOff(time.Second, 5*time.Second), zkqueue.WithMaxAttempts(6))
			time.Sleep(time.Minute)
			require.NoError(t, stop())
			require.Equal(t, []int{1, 2, 3, 4, 5, 6}, attempts)
			require.Equal(t, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 13 * time.Second, 18 * time.Second}, at)
			require.Equal(t, 1, good)
			dead := letters(t, q)
			require.Len(t, dead, 1)
			d := dead[0]
			require.True(t, strings.HasPrefix(d.Err, name), d.Err)
			require.Equal(t, strings.HasPrefix(name, "panic"), strings.Contains(d.Err, "work_test.go"), "the first lines of the stack: %s", d.Err)
			require.Equal(t, `"bad"`, string(d.Data))
			require.Equal(t, id, d.ID)
			require.Equal(t, 6, d.Attempts)
			require.Equal(t, []time.Duration{time.Second, 18 * time.Second}, []time.Duration{d.Enqueued.Sub(start), d.Died.Sub(start)})
		})
	}
}

// What may end the processes that work on it must not end all of them, one after the other.
func TestAcceptance167AnElementWhoseWorkersDieIsADeadLetter(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		for range 3 {
			s := v.Session()
			_ = receive(t, zkqueue.New[int](s, path))
			v.Expire(s)
		}
		stop := working(t, q, 1, func(context.Context, *zkqueue.Delivery[int]) error {
			t.Error("it was called")
			return nil
		}, zkqueue.WithMaxAttempts(3))
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		dead := letters(t, q)
		require.Len(t, dead, 1)
		require.Equal(t, 3, dead[0].Attempts)
		require.Contains(t, dead[0].Err, "after its last attempt, 3 of 3")
	})
}

// spoilt is a codec for which nothing is text but what begins with a quotation mark; an exclamation mark has it panic.
type spoilt struct{}

func (spoilt) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

func (spoilt) Unmarshal(data []byte, v any) error {
	switch {
	case strings.HasPrefix(string(data), "!"):
		panic("a codec without a clue")
	case !strings.HasPrefix(string(data), `"`):
		return errors.New("this is no text")
	}
	return json.Unmarshal(data, v)
}

func TestAcceptance168AnElementThatCannotBeDecodedIsADeadLetterAtOnce(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		raw := zkqueue.New[[]byte](v.Session(), path, zksync.WithCodec(zksync.Raw))
		q := zkqueue.New[string](v.Session(), path, zksync.WithCodec(spoilt{}))
		require.NoError(t, raw.PutAll(t.Context(), [][]byte{[]byte("7"), []byte(`"a"`), []byte("!"), []byte(`"b"`)}))
		got := make(chan string, 4)
		stop := working(t, q, 1, func(_ context.Context, d *zkqueue.Delivery[string]) error {
			got <- d.Value
			return nil
		})
		require.Equal(t, []string{"a", "b"}, []string{<-got, <-got})
		require.NoError(t, stop())
		dead := letters(t, q)
		require.Len(t, dead, 2)
		for i, text := range []string{"this is no text", "panic: a codec without a clue"} {
			require.Contains(t, dead[i].Err, text)
			require.Equal(t, 1, dead[i].Attempts)
			require.Equal(t, []string{"7", "!"}[i], string(dead[i].Data))
		}
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestAcceptance169WhenItsContextEndsWorkFinishesWhatIsUnderWay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		require.NoError(t, q.PutAll(t.Context(), []int{0, 1, 2, 3, 4, 5}))
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		causes := make([]error, 3)
		time.AfterFunc(10*time.Second, func() { cancel(stopped) })
		start := time.Now()
		require.NoError(t, q.Work(ctx, 3, func(ctx context.Context, d *zkqueue.Delivery[int]) error {
			switch d.Value {
			case 0: // in time, and acknowledged all the same
				time.Sleep(15 * time.Second)
				return ctx.Err()
			case 1: // too slow
				<-ctx.Done()
				causes[1] = context.Cause(ctx)
				return ctx.Err()
			}
			<-ctx.Done()
			return nil // done all the same
		}, zkqueue.WithGrace(7*time.Second)))
		require.Equal(t, 17*time.Second, time.Since(start))
		require.Equal(t, stopped, causes[1])
		require.Equal(t, []int{1, 3, 4, 5}, all(t, q))
		require.Empty(t, letters(t, q))
		d := tryReceive(t, q)
		require.Equal(t, []int{1, 2}, []int{d.Value, d.Attempt}, "at once")
	})
}

// A function that fails because Work ends is no failure of the element, also when this was its last attempt.
func TestAcceptance169TheEndOfWorkIsNoFailureOfAnElement(t *testing.T) {
	stopped := errors.New("stopped")
	for name, f := range map[string]func(outer, ctx context.Context) error{
		"the context of Work": func(outer, _ context.Context) error { <-outer.Done(); return outer.Err() },
		"its cause":           func(outer, _ context.Context) error { <-outer.Done(); return context.Cause(outer) },
		"the grace":           func(_, ctx context.Context) error { <-ctx.Done(); return errors.New("interrupted") },
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			q := zkqueue.New[int](v.Session(), path)
			put(t, q, 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(stopped) })
			require.NoError(t, q.Work(ctx, 1, func(under context.Context, _ *zkqueue.Delivery[int]) error { return f(ctx, under) },
				zkqueue.WithMaxAttempts(2), zkqueue.WithGrace(0)))
			d := tryReceive(t, q)
			require.Equal(t, 2, d.Attempt, name)
			require.NoError(t, d.Nack(t.Context()))
			for range 2 {
				attempts := 0
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, stopped)
				require.NoError(t, q.Work(ctx, 1, func(under context.Context, d *zkqueue.Delivery[int]) error {
					attempts = d.Attempt
					return f(ctx, under)
				}, zkqueue.WithMaxAttempts(3), zkqueue.WithGrace(0)))
				cancel()
				require.Equal(t, 3, attempts, name)
			}
			require.Empty(t, letters(t, q), name)
			require.Equal(t, 3, tryReceive(t, q).Attempt)
		})
	}
}

// A letter that may not be written: the element stays, and no worker spins.
func TestAcceptance170AnElementThatCannotBecomeADeadLetterIsTriedWithPauses(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](proving.Calm(v), path)
		put(t, q, 1)
		v.Put(path+"/zkqueue/dead", "")
		_, err := v.Session().Conn().SetACL(path+"/zkqueue/dead", zk.WorldACL(zk.PermRead), -1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		v.CostsAtMost(600, func() { // at last about one attempt in a second
			err = q.Work(ctx, 1, func(context.Context, *zkqueue.Delivery[int]) error {
				if calls++; calls > 1000 {
					cancel()
				}
				return errors.New("it fails")
			}, zkqueue.WithMaxAttempts(1))
		})
		require.NoError(t, err)
		require.Equal(t, 1, calls)
		require.Equal(t, 1, length(t, q))
	})
}

func TestAcceptance169WorkWithAContextThatHasEndedReceivesNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		v.Costs(0, func() { require.NoError(t, q.Work(ctx, 2, nothing)) })
		require.Equal(t, 1, tryReceive(t, q).Attempt)
	})
}

func nothing(context.Context, *zkqueue.Delivery[int]) error { return nil }

// A claim that is under way when the context ends is given back, and is no attempt.
func TestAcceptance169WhatArrivesWhenTheContextEndsIsGivenBackWithoutAnAttempt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q, other := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2)
		v.Server.Intercept(zktest.On(zktest.Multi, path+"/zkqueue/claims/**").Delay(time.Second).Times(1))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.NoError(t, q.Work(ctx, 1, func(context.Context, *zkqueue.Delivery[int]) error {
			t.Error("it was called")
			return nil
		}))
		require.Equal(t, time.Second, time.Since(start))
		d := tryReceive(t, other)
		require.Equal(t, []int{1, 1}, []int{d.Value, d.Attempt})
		require.NoError(t, d.Nack(t.Context()))
		require.Equal(t, 2, tryReceive(t, q).Attempt)
	})
}

func TestAcceptance170WorkGoesOnThroughLostSessionsAndOutages(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		q, other := zkqueue.New[int](s, path), zkqueue.New[int](v.Session(), path)
		put(t, other, 1)
		var mu sync.Mutex
		var seen []string
		causes := make(chan error, 10)
		stop := working(t, q, 1, func(ctx context.Context, d *zkqueue.Delivery[int]) error {
			mu.Lock()
			seen = append(seen, fmt.Sprint(d.Value, "/", d.Attempt))
			mu.Unlock()
			if d.Attempt == 1 {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			}
			return nil
		}, zkqueue.WithMaxAttempts(2))
		soFar := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(seen)
		}
		v.Quiet()
		v.Expire(s)
		require.ErrorIs(t, <-causes, zksync.ErrLost)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"1/1", "1/2"}, soFar())
		require.Zero(t, length(t, other))
		require.Empty(t, letters(t, other), "a loss is no failure")
		v.Server.Stop()
		time.Sleep(5 * time.Minute)
		v.Server.Restart()
		put(t, other, 2)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"1/1", "1/2", "2/1"}, soFar()[:3])
		require.NoError(t, stop())
	})
}

// It ends at once in an outage, if nothing is under way.
func TestAcceptance169InAnOutageWorkEndsWithItsContext(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		stop := working(t, q, 3, nothing)
		v.Quiet()
		v.Server.Stop()
		time.Sleep(time.Minute)
		start := time.Now()
		require.NoError(t, stop())
		require.Less(t, time.Since(start), time.Second)
	})
}

func TestAcceptance170WorkEndsWithPermanentErrors(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		q := zkqueue.New[int](s, path)
		for name, err := range map[string]error{
			"no goroutine": q.Work(t.Context(), 0, nothing), "no function": q.Work(t.Context(), 1, nil),
			"a nil option": q.Work(t.Context(), 1, nothing, nil), "no attempts": q.Work(t.Context(), 1, nothing, zkqueue.WithMaxAttempts(0)),
			"a bad back-off": q.Work(t.Context(), 1, nothing, zkqueue.WithBackOff(2, 1)), "none": q.Work(t.Context(), 1, nothing, zkqueue.WithBackOff(0, 1)),
			"a bad grace": q.Work(t.Context(), 1, nothing, zkqueue.WithGrace(-1)),
			"a bad path":  zkqueue.New[int](s, "q").Work(t.Context(), 1, nothing), "another capacity": func() error {
				put(t, q, 0)
				return zkqueue.New[int](v.Session(), path, zkqueue.WithCapacity(3)).Work(t.Context(), 3, nothing)
			}(),
		} {
			require.ErrorIs(t, err, zksync.ErrMisuse, name)
			require.ErrorContains(t, err, "zkqueue: work ", name)
		}
		put(t, q, 1)
		under := make(chan struct{})
		result := make(chan error, 1)
		go func() {
			result <- q.Work(t.Context(), 2, func(ctx context.Context, _ *zkqueue.Delivery[int]) error {
				close(under)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		require.Equal(t, 0, take(t, q))
		<-under
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-result, zksync.ErrClosed)
	})
}

func TestAcceptance167TheFunctionMayEndItsDeliveryItself(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		require.NoError(t, q.PutAll(t.Context(), []int{0, 1, 2}))
		stop := working(t, q, 1, func(ctx context.Context, d *zkqueue.Delivery[int]) error {
			switch {
			case d.Value == 0:
				require.NoError(t, d.Ack(ctx))
				return errors.New("after the Ack")
			case d.Attempt == 1:
				require.NoError(t, d.Nack(ctx, zkqueue.WithDelay(time.Minute)))
			}
			return nil
		}, zkqueue.WithMaxAttempts(1))
		time.Sleep(time.Second)
		require.Equal(t, []int{1, 2}, all(t, q))
		require.Empty(t, letters(t, q))
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		require.Len(t, letters(t, q), 2, "the second attempts come after the last one")
	})
}

func TestAcceptance171DeadLettersAreListedRedrivenAndRemoved(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		other := zkqueue.New[int](proving.Calm(v), path)
		require.Empty(t, letters(t, other))
		for i := range 3 {
			put(t, q, i)
		}
		require.NoError(t, q.Put(t.Context(), 3, zkqueue.WithPriority(7)))
		bury(t, q, 4)
		dead := letters(t, other)
		require.Len(t, dead, 4)
		for i, d := range dead {
			require.Equal(t, fmt.Sprint(i), string(d.Data))
		}
		require.Zero(t, length(t, other))
		put(t, other, 9)
		require.NoError(t, other.Put(t.Context(), 8, zkqueue.WithPriority(7)))
		v.Costs(3, func() { require.NoError(t, other.Dead().Redrive(t.Context(), dead[1].ID)) }, "a sync, the letter, the change")
		require.NoError(t, other.Dead().Redrive(t.Context(), dead[3].ID))
		v.Costs(1, func() { require.NoError(t, other.Dead().Remove(t.Context(), dead[2].ID)) })
		for _, id := range []string{dead[1].ID, dead[2].ID, "no-such", "", ".", "..", "a/b", "x\x00"} {
			for _, err := range []error{other.Dead().Redrive(t.Context(), id), other.Dead().Remove(t.Context(), id)} {
				require.ErrorIs(t, err, zksync.ErrNotFound, id)
				require.ErrorContains(t, err, path)
			}
		}
		v.Costs(2, func() {
			n, err := other.Dead().Len(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}, "a sync, the status of the directory")
		require.Equal(t, []int{9, 1, 8, 3}, all(t, other), "at the end of its priority")
		require.Equal(t, 9, take(t, other))
		d := receive(t, other)
		require.Equal(t, []int{1, 1}, []int{d.Value, d.Attempt})
		require.NotEqual(t, dead[1].ID, d.ID())
		require.NoError(t, d.Ack(t.Context()))
	})
}

// bury has Work make n elements dead letters.
func bury[T any](t *testing.T, q *zkqueue.Queue[T], n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, q.Work(ctx, 1, func(context.Context, *zkqueue.Delivery[T]) error {
		if n--; n == 0 {
			cancel()
		}
		return errors.New("it cannot be done")
	}, zkqueue.WithMaxAttempts(1)))
}

func TestAcceptance171ARedriveIntoABoundedQueueWaitsForRoom(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path, zkqueue.WithCapacity(1))
		put(t, q, 1)
		bury(t, q, 1)
		put(t, q, 2)
		id := letters(t, q)[0].ID
		waiting := proving.Waits(t.Context(), func(ctx context.Context) error { return q.Dead().Redrive(ctx, id) })
		v.Quiet()
		require.True(t, waiting.Pending())
		require.Len(t, letters(t, q), 1)
		require.Equal(t, 2, take(t, q))
		v.Passes(waiting)
		require.Equal(t, []int{1}, all(t, q))
		require.Empty(t, letters(t, q))
	})
}

// The longest value, the longest reason, and one in which each byte takes six.
func TestADeadLetterHasRoomForWhateverWasPut(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[string](v.Session(), path, zksync.WithCodec(zksync.Raw))
		err := q.Put(t.Context(), strings.Repeat("x", 1<<20))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		var size, limit, others int
		_, text, _ := strings.Cut(err.Error(), "the value takes ")
		_, err = fmt.Sscanf(text, "%d bytes, and the servers accept %d in a request, of which %d", &size, &limit, &others)
		require.NoError(t, err)
		longest := strings.Repeat("x", limit-others)
		for _, why := range []string{strings.Repeat("\x01", 10_000), "x" + strings.Repeat("é", 2000)} {
			require.NoError(t, q.Put(t.Context(), longest))
			ctx, cancel := context.WithCancel(t.Context())
			require.NoError(t, q.Work(ctx, 1, func(context.Context, *zkqueue.Delivery[string]) error {
				cancel()
				return errors.New(why)
			}, zkqueue.WithMaxAttempts(1)))
			dead := letters(t, q)
			require.Len(t, dead, 1)
			require.Equal(t, longest, string(dead[0].Data))
			require.LessOrEqual(t, len(dead[0].Err), 2<<10)
			require.True(t, strings.HasPrefix(strings.ToValidUTF8(why, ""), dead[0].Err))
			require.NoError(t, q.Dead().Redrive(t.Context(), dead[0].ID))
			_, err := q.Take(t.Context())
			require.NoError(t, err)
		}
	})
}

// Nodes that another program has made there.
func TestAnyNodeMayBeADeadLetter(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		bury(t, q, 1)
		for name, data := range map[string]string{"x": "", "y.0000000001": "{}\n5", "zz": "not JSON\n", "a": "{\"attempts\":\"no\"}\n"} {
			v.Put(path+"/zkqueue/dead/"+name, data)
		}
		dead := letters(t, q)
		require.Len(t, dead, 5)
		for _, d := range dead {
			require.NoError(t, q.Dead().Redrive(t.Context(), d.ID))
		}
		require.Empty(t, letters(t, q))
		require.Equal(t, 5, length(t, q))
	})
}

// Consumers that wait do not see what becomes of dead letters.
func TestDeadLettersDisturbNoConsumer(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q, other := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		put(t, q, 1, 2)
		bury(t, q, 2)
		waiting, _ := taking(t.Context(), other)
		v.Quiet()
		ids := slices.Collect(func(yield func(string) bool) {
			for _, d := range letters(t, q) {
				if !yield(d.ID) {
					return
				}
			}
		})
		time.Sleep(time.Minute)
		listings := v.Server.RequestsBy(zktest.GetChildren)
		require.NoError(t, q.Dead().Remove(t.Context(), ids[0]))
		v.Quiet()
		require.Equal(t, listings, v.Server.RequestsBy(zktest.GetChildren))
		require.True(t, waiting.Pending())
		require.NoError(t, q.Dead().Redrive(t.Context(), ids[1]))
		v.Passes(waiting)
	})
}

// losses is a tracer that keeps the reasons of losses.
type losses struct {
	mu      sync.Mutex
	reasons []string
}

func (*losses) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (*losses) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (l *losses) Lost(_ context.Context, d zksync.LossData) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = append(l.reasons, d.Reason)
}

func TestAcceptance172ADeliveryIsGivenUpAfterItsMaxHold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		told := &losses{}
		q := zkqueue.New[int](v.Session(zksync.WithTracer(told)), path, zksync.WithMaxHold(3*time.Second))
		other := zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2)
		d := receive(t, q)
		start := time.Now()
		next := receive(t, q)
		require.NoError(t, next.Ack(t.Context()))
		waiting, got := taking(t.Context(), other)
		<-d.Lease().Done()
		require.Equal(t, 3*time.Second, time.Since(start))
		v.Passes(waiting)
		require.Equal(t, 1, *got)
		require.Equal(t, 3*time.Second, time.Since(start), "the element comes again at once")
		for _, err := range []error{d.Lease().Err(), d.Ack(t.Context()), d.Nack(t.Context(), zkqueue.WithDelay(time.Hour))} {
			require.ErrorIs(t, err, zksync.ErrMaxHold)
			require.ErrorIs(t, err, zksync.ErrLost)
		}
		told.mu.Lock()
		require.Equal(t, []string{zksync.ReasonMaxHold}, told.reasons)
		told.mu.Unlock()
		require.Zero(t, length(t, q))
	})
}

// A worker that hangs keeps no element, and what hangs everywhere becomes a dead letter.
func TestAcceptance172WorkWithAMaxHold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path, zksync.WithMaxHold(3*time.Second))
		put(t, q, 1)
		start := time.Now()
		var at []time.Duration
		stop := working(t, q, 1, func(ctx context.Context, d *zkqueue.Delivery[int]) error {
			at = append(at, time.Since(start))
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), zksync.ErrMaxHold)
			return ctx.Err()
		}, zkqueue.WithMaxAttempts(2))
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, []time.Duration{0, 3 * time.Second}, at)
		require.Equal(t, 2, letters(t, q)[0].Attempts)
	})
}

func TestAcceptance172OtherOptionsOfHoldsAreNotForQueues(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for _, o := range []zksync.Option{zksync.WithHandover(1), zksync.WithLinger(time.Second), zksync.WithAsyncUnlock(), zksync.WithMaxHold(-1)} {
			require.ErrorIs(t, zkqueue.New[int](v.Session(), path, o).Put(t.Context(), 1), zksync.ErrMisuse)
		}
	})
}

func TestTheStateOfAQueueHasItsDeadLetters(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2)
		bury(t, q, 1)
		st, err := q.State(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Dead)
		require.Equal(t, path+": queue, 1 element, 1 dead letter", st.String())
		text, err := json.Marshal(st)
		require.NoError(t, err)
		require.Contains(t, string(text), `"dead":1`)
		bury(t, q, 1)
		st, err = q.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, path+": queue, 0 elements, 2 dead letters", st.String())
	})
}
