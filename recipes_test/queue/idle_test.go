package queue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// The goroutines of an idle Work have one entry in the line, and an element that comes alone costs the same however many they are.
func TestAcceptance166AnIdleWorkHasOneEntryInTheLine(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			q, other := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
			put(t, other, 0)
			_ = working(t, q, n, nothing)
			v.Quiet()
			require.Len(t, v.Children(path+"/zkqueue/takers"), 1)
			time.Sleep(time.Second) // the entry is looked at once
			v.Costs(0, func() { time.Sleep(10 * time.Minute) })
			for range 3 {
				v.CostsAtMost(1+11, func() {
					put(t, other, 1)
					v.Quiet()
				}, "the Put; two listings, the read, the claim, the acknowledgement, the entry, and a new entry with two listings, and two more if that was before the acknowledgement")
				time.Sleep(3 * time.Second)
			}
			v.CostsAtMost(1+3*100+50, func() { // it was 451 with an entry for each goroutine
				require.NoError(t, other.PutAll(t.Context(), make([]int, 100)))
				v.Quiet()
			})
			require.Zero(t, length(t, other))
			require.Len(t, v.Children(path+"/zkqueue/takers"), 1)
		})
	}
}

// How long workers take for elements that are there, and for elements that come one after the other.
func TestAcceptance166EightWorkersAreFiveTimesAsFastAsOne(t *testing.T) {
	const elements = 400
	play := func(t *testing.T, v *proving.Env, path string, n int, sessions []*zksync.Session, come func(q *zkqueue.Queue[int])) time.Duration {
		producer := zkqueue.New[int](proving.Calm(v), path)
		require.NoError(t, producer.Put(t.Context(), 0))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		var done atomic.Int32
		var took time.Duration
		start := time.Now()
		all.Go(func() { come(producer) })
		for _, q := range queues(sessions, path) {
			all.Go(func() {
				_ = q.Work(ctx, n, func(context.Context, *zkqueue.Delivery[int]) error {
					time.Sleep(work)
					if done.Add(1) == elements+1 {
						took = time.Since(start)
						time.AfterFunc(time.Second, stop) // it is acknowledged before
					}
					return nil
				})
			})
		}
		all.Wait()
		require.EqualValues(t, elements+1, done.Load())
		return took
	}
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		sessions := away(t, v, 8)
		backlog := func(q *zkqueue.Queue[int]) { require.NoError(t, q.PutAll(t.Context(), make([]int, elements))) }
		one := play(t, v, "/queues/one", 1, sessions[:1], backlog)
		eight := play(t, v, "/queues/eight", 8, sessions[:1], backlog)
		several := play(t, v, "/queues/several", 8, sessions, backlog)
		stream := play(t, v, "/queues/stream", 8, sessions[:1], func(q *zkqueue.Queue[int]) {
			for range elements {
				time.Sleep(time.Millisecond)
				put(t, q, 1)
			}
		})
		t.Log(one, eight, several, stream)
		require.GreaterOrEqual(t, float64(one)/float64(eight), 5.0)
		require.Less(t, several, eight)
		require.Less(t, stream, elements*time.Millisecond*11/10, "they keep up")
	})
}

// Processes get equal shares of what comes, however many goroutines each has.
func TestAcceptance166AWorkWithManyGoroutinesLeavesOthersTheirShare(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		sessions, producer := away(t, v, 2), zkqueue.New[int](proving.Calm(v), path)
		put(t, producer, 0)
		var got [2]atomic.Int32
		for i, q := range queues(sessions, path) {
			_ = working(t, q, []int{64, 1}[i], func(context.Context, *zkqueue.Delivery[int]) error {
				got[i].Add(1)
				return nil
			})
		}
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			put(t, producer, 1)
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 101, got[0].Load()+got[1].Load())
		for i := range got {
			require.GreaterOrEqual(t, got[i].Load(), int32(40), "of process %d", i)
		}
	})
}
