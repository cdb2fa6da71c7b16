package queue_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestRequestsOfPut(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q, second := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		put(t, q, 0)
		v.Costs(1, func() { put(t, q, 1) }, "Put")
		v.Costs(2, func() { put(t, second, 2) }, "the first Put of an object")
		v.Costs(1, func() {
			ok, err := q.Offer(t.Context(), 3)
			require.NoError(t, err)
			require.True(t, ok)
		}, "Offer")
		v.Costs(1, func() { require.NoError(t, q.Put(t.Context(), 4, zkqueue.WithPriority(1))) }, "PutPriority")
		v.Costs(2, func() { require.NoError(t, q.Put(t.Context(), 4, zkqueue.WithDelay(time.Second))) }, "PutAfter")
		v.Costs(2, func() { require.Equal(t, 6, length(t, q)) }, "Len")
	})
}

func TestRequestsOfABoundedPut(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		bounded := zkqueue.WithCapacity(5)
		q, other := zkqueue.New[int](proving.Calm(v), path, bounded), zkqueue.New[int](proving.Calm(v), path, bounded)
		put(t, q, 0)
		require.Equal(t, 1, length(t, other))
		v.Costs(1, func() { put(t, q, 1) }, "Put by the one who was the last")
		v.Costs(3, func() { put(t, other, 2) }, "Put by another: it looks at the line and the queue")
		v.Costs(1, func() { put(t, other, 3) }, "its next one")
		v.Costs(6, func() { put(t, q, 4) }, "Put that learns that others put: a refusal; a place in line, a watch, the queue, the element, and out of the line")
		v.Costs(2, func() {
			ok, err := q.Offer(t.Context(), 5)
			require.NoError(t, err)
			require.False(t, ok)
		}, "Offer to a full queue")
		var waiting *proving.Attempt
		v.Costs(5, func() {
			waiting = proving.Waits(t.Context(), func(ctx context.Context) error { return q.Put(ctx, 5) })
		}, "a Put that waits: the line, the queue, a place in line, a watch, the queue")
		require.True(t, waiting.Pending())
		time.Sleep(time.Second) // it watches its own place in line after half a second
		v.Costs(0, func() { time.Sleep(v.Span(5*time.Second, time.Second)) }, "it waits")
		require.Equal(t, 0, take(t, other))
		v.Passes(waiting)
	})
}

// Whoever makes the queue knows that it is empty.
func TestRequestsOfTheFirstTakeAndReceiveOfANewPath(t *testing.T) {
	for name, begins := range map[string]func(context.Context, *zkqueue.Queue[int]) error{
		"Take":    func(ctx context.Context, q *zkqueue.Queue[int]) error { _, err := q.Take(ctx); return err },
		"Receive": func(ctx context.Context, q *zkqueue.Queue[int]) error { _, err := q.Receive(ctx); return err },
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			q, p := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
			got := make(chan error, 1)
			v.Costs(7, func() {
				go func() { got <- begins(t.Context(), q) }()
				v.Quiet()
			}, "%s: the terms, the path, all nodes at once, twice as the directory above is missing; the line, two listings", name)
			put(t, p, 1)
			require.NoError(t, <-got)
		})
	}
}

// A batch is what a listing shows. The first delivery of a batch pays for the listing.
func TestRequestsOfReceiveAndAck(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		require.Zero(t, length(t, q))
		put(t, p, 0, 1, 2, 3, 4, 5)
		cycle := func(i int) func() {
			return func() {
				d := receive(t, q)
				require.Equal(t, i, d.Value)
				require.NoError(t, d.Ack(t.Context()))
			}
		}
		v.Costs(7, cycle(0), "the first of a batch: a sync, two listings, the line; the element, the claim, the ack")
		for i := 1; i <= 3; i++ {
			v.Costs(3, cycle(i), "the element, the claim, the ack")
		}
		v.Costs(2, func() { require.Equal(t, 4, take(t, q)) }, "Take: the element, its removal")
		v.Costs(2, func() { require.Equal(t, 5, take(t, q)) }, "Take")
		put(t, p, 6)
		v.Costs(6, func() { require.Equal(t, 6, take(t, q)) }, "the first Take of a batch")
		v.Costs(4, func() {
			_, ok, err := q.TryTake(t.Context())
			require.NoError(t, err)
			require.False(t, ok)
		}, "TryTake of an empty queue")
		put(t, p, 7)
		v.Costs(4, func() {
			_, ok, err := q.Peek(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
		}, "Peek")
		d := receive(t, q)
		v.Costs(1, func() { require.NoError(t, d.Nack(t.Context())) }, "Nack")
		put(t, p, 8, 9)
		v.Costs(6, func() { require.Len(t, all(t, q), 3) }, "All: a sync, two listings, the elements")
		v.Costs(7, func() {
			got, err := q.Drain(t.Context(), 10)
			require.NoError(t, err)
			require.Equal(t, []int{7, 8, 9}, got)
		}, "Drain: a sync, two listings, the elements, their removal")
	})
}

// A consumer goes on in its listing although elements are put behind all others.
func TestRequestsOfReceiveWhileElementsArePutBehindAll(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		put(t, p, 0, 1, 2, 3)
		require.Equal(t, 0, take(t, q))
		for i := 1; i <= 3; i++ {
			require.NoError(t, p.Put(t.Context(), 10*i, zkqueue.WithPriority(9)))
			put(t, p, 10+i)
			v.Costs(2, func() { require.Equal(t, i, take(t, q)) }, "Take")
		}
	})
}

// At the end of the numbers an object asks once for each element when it was made.
func TestRequestsPastTheLastSequenceNumber(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		require.Zero(t, length(t, p))
		require.Zero(t, length(t, q))
		v.Server.SetSequence(path+"/zkqueue/elements", math.MaxInt32)
		const n = 150
		for i := range n {
			put(t, p, i)
		}
		peek := func() {
			got, ok, err := q.Peek(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, 0, got)
		}
		v.Costs(4+n, peek, "a sync, two listings, each element; the first one")
		v.Costs(4, peek, "nothing is asked twice")
		put(t, p, n)
		v.Costs(5, peek)
		for i := range n + 1 {
			require.Equal(t, i, take(t, q))
		}
	})
}

// Times that no queue has put: of other programs, in the past, or farther ahead than the numbers of clocks reach.
func TestAnIdleTakeWaitsForAnyDueTimeWithoutRequests(t *testing.T) {
	for _, due := range []int64{math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64 / int64(time.Millisecond), 1 << 53} {
		proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
			q := zkqueue.New[int](proving.Calm(v), path)
			put(t, q, 1)
			require.Equal(t, 1, take(t, q))
			v.Put(fmt.Sprintf("%s/zkqueue/elements/e.d%d.00aabbcc.0000000009", path, due), "2")
			waiting, _ := taking(t.Context(), q)
			v.Quiet()
			v.CostsAtMost(8, func() { time.Sleep(v.Span(31*time.Second, 3*time.Second)) }, "it looks once in half a minute")
			require.True(t, waiting.Pending())
		})
	}
}

func TestADelayIsAsLongAsItSays(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](proving.Calm(v), path)
		for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 200 * 365 * 24 * time.Hour} {
			require.NoError(t, q.Put(t.Context(), 1, zkqueue.WithDelay(d)))
		}
		_, ok, err := q.TryTake(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, 3, length(t, q))
		for _, due := range []int64{-1, 1, math.MinInt64} {
			v.Put(fmt.Sprintf("%s/zkqueue/elements/e.d%d.00aabbcc.0000000009", path, due), "2")
			require.Equal(t, 2, take(t, q), "a time in the past")
		}
		require.NoError(t, q.Put(t.Context(), 3, zkqueue.WithDelay(-time.Second)))
		require.Equal(t, 3, take(t, q))
	})
}

func TestAcceptance088AnIdleTakeMakesNoTraffic(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		p := zkqueue.New[int](proving.Calm(v), path)
		require.Zero(t, length(t, p))
		got := make(chan int)
		for range 10 {
			q := zkqueue.New[int](proving.Calm(v), path)
			go func() {
				n, err := q.Take(t.Context())
				if err == nil {
					got <- n
				}
			}()
			v.Quiet()
		}
		time.Sleep(5 * time.Second) // the lock's queue looks once more at who is ahead, in the first sixteenth of a session timeout
		v.Costs(0, func() { time.Sleep(v.Span(9*time.Second, 3*time.Second)) }, "ten consumers wait")
		for i := range 10 {
			left := 9 - i
			n := v.Counted(func() {
				put(t, p, i)
				require.Equal(t, i, <-got)
			})
			t.Log("one Put, one Take:", n, "requests")
			// The Put; two listings, the element, its removal, the place in line. Then the next one is the
			// first in line, and looks for itself.
			require.LessOrEqual(t, n, 6+min(left, 1)*4, "one Put wakes one consumer")
		}
	})
}

// A Put that waits does not read the names of the elements, of which there may be many.
func TestAPutThatWaitsListsNoElements(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bounded := zkqueue.WithCapacity(100)
		q, other := zkqueue.New[int](proving.Calm(v), path, bounded), zkqueue.New[int](proving.Calm(v), path, bounded)
		for i := range 100 {
			put(t, q, i)
		}
		listings := v.Server.RequestsBy(zktest.GetChildren)
		waiting := proving.Waits(t.Context(), func(ctx context.Context) error { return q.Put(ctx, 100) })
		v.Quiet()
		require.True(t, waiting.Pending())
		require.Equal(t, listings, v.Server.RequestsBy(zktest.GetChildren))
		require.Equal(t, 0, take(t, other))
		v.Passes(waiting)
		waiting = proving.Waits(t.Context(), func(ctx context.Context) error { return q.Put(ctx, 101) })
		v.Quiet()
		v.Server.Disconnect(v.Server.Sessions()[0].ID)
		v.Quiet()
		require.Equal(t, 1, take(t, other))
		v.Passes(waiting)
	})
}

// A long listing with delayed elements is made once for each element, whoever waits. Whether anything has changed since, the
// status of the directory tells.
func TestAConsumerBesideManyDelayedElementsListsThemOnceForEachElement(t *testing.T) {
	for name, get := range map[string]func(t *testing.T, q *zkqueue.Queue[int]) int{
		"Take": take,
		"Receive": func(t *testing.T, q *zkqueue.Queue[int]) int {
			d := receive(t, q)
			require.NoError(t, d.Ack(t.Context()))
			return d.Value
		},
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
			delay(t, p, 100)
			put(t, p, -1)
			require.Equal(t, -1, get(t, q))
			got := make(chan int)
			for i := range 5 {
				listings := v.Server.RequestsBy(zktest.GetChildren)
				v.Costs(4, func() {
					go func() { got <- get(t, q) }()
					v.Quiet()
				}, "%s waits: the line, the claims, a watch of the elements, their directory", name)
				put(t, p, i)
				require.Equal(t, i, <-got)
				v.Quiet()
				require.Equal(t, 3, int(v.Server.RequestsBy(zktest.GetChildren)-listings), "%s: the claims twice, the elements once", name)
			}
		})
	}
}

// delay puts n elements that are not due for an hour.
func delay(t *testing.T, q *zkqueue.Queue[int], n int) {
	t.Helper()
	for range n {
		require.NoError(t, q.Put(t.Context(), 0, zkqueue.WithDelay(time.Hour)))
	}
}

// What others change between two waits of a consumer is seen, though the number of elements is what it was.
func TestAConsumerBesideDelayedElementsSeesWhatHasChangedSinceItsListing(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, v *proving.Env, p *zkqueue.Queue[int]){
		"an element more": func(t *testing.T, v *proving.Env, p *zkqueue.Queue[int]) { put(t, p, 1) },
		"one that goes before others": func(t *testing.T, v *proving.Env, p *zkqueue.Queue[int]) {
			require.NoError(t, p.Put(t.Context(), 1, zkqueue.WithPriority(-1)))
		},
		"one in place of another": func(t *testing.T, v *proving.Env, p *zkqueue.Queue[int]) {
			v.Remove(path + "/zkqueue/elements/" + v.Children(path + "/zkqueue/elements")[0])
			put(t, p, 1)
		},
		"one that is given back": func(t *testing.T, v *proving.Env, p *zkqueue.Queue[int]) {
			put(t, p, 1)
			require.NoError(t, receive(t, p).Nack(t.Context()))
		},
		"another queue": func(t *testing.T, v *proving.Env, p *zkqueue.Queue[int]) {
			v.Server.DeleteAll(path)
			other := zkqueue.New[int](v.Session(), path)
			delay(t, other, 101) // as many changes as the other one has had
			put(t, other, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
				delay(t, p, 100)
				put(t, p, 0)
				require.Equal(t, 0, take(t, q))
				change(t, v, p)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				got, err := q.Take(ctx)
				require.NoError(t, err)
				require.Equal(t, 1, got)
				require.Zero(t, time.Since(start))
			})
		})
	}
}

// A consumer that waits lists nothing when an element becomes due: nothing has changed.
func TestAConsumerListsDelayedElementsOnceWhenTheyBecomeDueOneAfterTheOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		delay(t, p, 100)
		const n = 100
		for i := range n {
			require.NoError(t, p.Put(t.Context(), i, zkqueue.WithDelay(time.Duration(i+1)*time.Second)))
		}
		listings := v.Server.RequestsBy(zktest.GetChildren)
		for i := range n {
			require.Equal(t, i, take(t, q))
		}
		require.Equal(t, 1+1+n, int(v.Server.RequestsBy(zktest.GetChildren)-listings), "both directories; of the claims for each element")
	})
}

// Delayed elements stay in the listing of a consumer that waits: it lists again when something has changed, and when it begins to wait.
func TestATakeBesideDelayedElementsListsThemForEachEvent(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		for range 50 {
			require.NoError(t, p.Put(t.Context(), 0, zkqueue.WithDelay(time.Hour)))
		}
		put(t, p, -1)
		require.Equal(t, -1, take(t, q))
		const n = 10
		listings := v.Server.RequestsBy(zktest.GetChildren)
		for i := range n {
			waiting, got := taking(t.Context(), q)
			v.Quiet()
			put(t, p, i)
			v.Passes(waiting)
			require.Equal(t, i, *got)
		}
		require.LessOrEqual(t, int(v.Server.RequestsBy(zktest.GetChildren)-listings), 4*n, "of the claims and of the elements, twice each")
	})
}

// Past the last sequence number the servers count only the deletions.
func TestPastTheLastSequenceNumberAConsumerBesideDelayedElementsSeesWhatHasChanged(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
		delay(t, p, 100)
		put(t, p, 0)
		elements := path + "/zkqueue/elements"
		v.Server.SetSequence(elements, math.MaxInt32)
		require.Equal(t, 0, take(t, q))
		v.Remove(elements + "/" + v.Children(elements)[0])
		put(t, p, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := q.Take(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, got)
	})
}
