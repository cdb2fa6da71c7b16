package queue_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// tryReceive is TryReceive of a queue that has an element.
func tryReceive(t *testing.T, q *zkqueue.Queue[int]) *zkqueue.Delivery[int] {
	t.Helper()
	d, ok, err := q.TryReceive(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	return d
}

// none asserts that a queue has no element that could be delivered now.
func none(t *testing.T, q *zkqueue.Queue[int]) {
	t.Helper()
	d, ok, err := q.TryReceive(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	require.Nil(t, d)
}

func TestAcceptance162TryReceiveDeliversWhatIsThereNow(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		p, q, other := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](v.Session(), path)
		none(t, q)
		put(t, p, 1, 2)
		none(t, zkqueue.New[int](v.Session(), "/queues/other"))
		var d *zkqueue.Delivery[int]
		v.Costs(6, func() { d = tryReceive(t, q) }, "a sync, two listings, the line; the element, the claim")
		require.Equal(t, []int{1, 1}, []int{d.Value, d.Attempt})
		second := tryReceive(t, other)
		require.Equal(t, 2, second.Value)
		none(t, q)
		v.Costs(4, func() { none(t, q) }, "a sync, two listings, the line")
		require.NoError(t, second.Nack(t.Context()))
		again := tryReceive(t, q)
		require.Equal(t, []int{2, 2}, []int{again.Value, again.Attempt})
		require.NoError(t, again.Ack(t.Context()))
		require.NoError(t, d.Ack(t.Context()))
		require.Zero(t, length(t, q))
	})
}

func TestAcceptance163AnElementKeepsItsIDAndItsTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p, q := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		at := time.Now()
		put(t, p, 1, 2)
		time.Sleep(time.Minute)
		d, other := receive(t, q), receive(t, q)
		require.NotEqual(t, d.ID(), other.ID())
		id := d.ID()
		for attempt, back := range [][]zkqueue.PutOption{nil, {zkqueue.WithDelay(time.Second)}, {zkqueue.WithPriority(3)}, {zkqueue.WithDelay(time.Second), zkqueue.WithPriority(-1)}, nil} {
			require.Equal(t, []int{1, attempt + 1}, []int{d.Value, d.Attempt})
			require.Equal(t, id, d.ID())
			require.True(t, d.Enqueued().Equal(at.Truncate(time.Millisecond)), "%v, not %v", d.Enqueued(), at)
			require.NoError(t, d.Nack(t.Context(), back...))
			d = receive(t, zkqueue.New[int](v.Session(), path))
		}
		require.NoError(t, d.Ack(t.Context()))
		require.NoError(t, other.Ack(t.Context()))
		require.Zero(t, length(t, q))
	})
}

func TestAcceptance164ANackWithADelayIsNotDeliveredBefore(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](proving.Calm(v), path)
		other := zkqueue.New[int](proving.Calm(v), path)
		put(t, q, 1, 2, 3, 4)
		d := receive(t, q)
		at := time.Now()
		v.Costs(2, func() { require.NoError(t, d.Nack(t.Context(), zkqueue.WithDelay(1500*time.Microsecond))) }, "the leader's time, which is known for a minute then; the element")
		due := receive(t, q)
		require.Equal(t, 2, due.Value, "1 is delayed")
		v.Costs(1, func() { require.NoError(t, due.Nack(t.Context(), zkqueue.WithDelay(time.Hour))) }, "the element")
		v.Costs(3, func() {
			third := receive(t, q)
			require.Equal(t, 3, third.Value)
			require.NoError(t, third.Ack(t.Context()))
		}, "nobody lists again")
		time.Sleep(2*time.Millisecond - time.Since(at))
		v.Costs(2, func() { d = receive(t, q) }, "its place is before 4, also in the listing from before")
		require.Equal(t, []int{1, 2}, []int{d.Value, d.Attempt})
		require.NoError(t, d.Nack(t.Context(), zkqueue.WithDelay(time.Second)))
		at = time.Now()
		require.Equal(t, 4, take(t, other))
		require.Equal(t, 1, take(t, other), "another session waits for it")
		require.Equal(t, time.Second, time.Since(at))
		require.Equal(t, 2, take(t, q))
		require.Equal(t, time.Hour, time.Since(at).Round(time.Minute))
	})
}

func TestAcceptance164ANackWithAPriorityMovesTheElement(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q, other := zkqueue.New[int](proving.Calm(v), path, zkqueue.WithCapacity(4)), zkqueue.New[int](proving.Calm(v), path, zkqueue.WithCapacity(4))
		put(t, q, 1, 2, 3)
		require.NoError(t, q.Put(t.Context(), 9, zkqueue.WithPriority(1)))
		require.Equal(t, []int{1, 2, 3, 9}, all(t, other))
		d := receive(t, q)
		v.Costs(1, func() { require.NoError(t, d.Nack(t.Context(), zkqueue.WithPriority(1))) })
		d = receive(t, other)
		require.Equal(t, 2, d.Value)
		require.NoError(t, d.Nack(t.Context(), zkqueue.WithPriority(0)))
		d = receive(t, q)
		require.Equal(t, []int{2, 2}, []int{d.Value, d.Attempt}, "its place")
		three := receive(t, other)
		require.NoError(t, three.Nack(t.Context(), zkqueue.WithPriority(-5)))
		require.NoError(t, d.Nack(t.Context()))
		require.Equal(t, 4, length(t, q), "a bounded queue needs no room for it")
		require.Equal(t, []int{3, 2, 1, 9}, all(t, q))
		for _, want := range []int{3, 2, 1, 9} {
			require.Equal(t, want, take(t, q))
		}
	})
}

func TestAcceptance164ANackWithANilOptionLosesNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		d := receive(t, q)
		err := d.Nack(t.Context(), nil)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "zkqueue: nack "+path)
		require.True(t, d.Lease().Valid())
		require.NoError(t, d.Ack(t.Context()))
	})
}

// The longest delay, and one that is none.
func TestANackWithAnyDelay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2)
		require.NoError(t, receive(t, q).Nack(t.Context(), zkqueue.WithDelay(-time.Second)))
		d := receive(t, q)
		require.Equal(t, []int{1, 2}, []int{d.Value, d.Attempt})
		require.NoError(t, d.Nack(t.Context(), zkqueue.WithDelay(1<<63-1)))
		require.Equal(t, 2, take(t, q))
		none(t, q)
		require.Equal(t, []int{1}, all(t, q))
	})
}

// A consumer that waits in line is the first to see an element that another session gives back with a delay.
func TestAConsumerThatWaitsGetsADelayedElementWhenItIsDue(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q, other := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		d := receive(t, q)
		waiting, got := taking(t.Context(), other)
		v.Quiet()
		start := time.Now()
		require.NoError(t, d.Nack(t.Context(), zkqueue.WithDelay(3*time.Second)))
		v.Passes(waiting)
		require.Equal(t, 1, *got)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

// Names that another program has made: what cannot be read of them counts as nothing.
func TestElementsWithAnyOriginAreDelivered(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		require.Zero(t, length(t, q))
		const most = 1<<31 - 1
		for name, attempt := range map[string]int{
			"e.00aabbcc-5-7-2.0000000001": 6, "e.00aabbcc-5-7.0000000002": 1, "e.00aabbcc-x-y-z.0000000003": 1, "e.a-5-1-9.0000000004": 1,
			"e.a-5-9223372036854775807-9.0000000005": 1, "e.a-5-4000000000-0.0000000006": most + 1, "e.---.0000000007": 1, "e.-.0000000008": 1,
		} {
			v.Put(path+"/zkqueue/elements/"+name, "1")
			d := receive(t, q)
			require.Equal(t, attempt, d.Attempt, name)
			require.NotContains(t, d.ID(), "/")
			require.NoError(t, d.Nack(t.Context(), zkqueue.WithDelay(time.Second)), name)
			d = receive(t, q)
			require.Equal(t, min(attempt, most)+1, d.Attempt, name)
			require.NoError(t, d.Ack(t.Context()))
		}
	})
}

func TestAcceptance165PutAllPutsAllOrNone(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](proving.Calm(v), path)
		put(t, q, 0)
		v.Costs(1, func() { require.NoError(t, q.PutAll(t.Context(), []int{1, 2, 3})) })
		v.Costs(0, func() { require.NoError(t, q.PutAll(t.Context(), nil)) }, "nothing")
		require.NoError(t, q.PutAll(t.Context(), []int{8, 9}, zkqueue.WithPriority(-1)))
		v.Costs(2, func() { require.NoError(t, q.PutAll(t.Context(), []int{6, 7}, zkqueue.WithDelay(time.Hour))) })
		require.Equal(t, []int{8, 9, 0, 1, 2, 3, 6, 7}, all(t, q))
		require.ErrorIs(t, q.PutAll(t.Context(), []int{1}, nil), zksync.ErrMisuse)
		got, err := q.Drain(t.Context(), 100)
		require.NoError(t, err)
		require.Equal(t, []int{8, 9, 0, 1, 2, 3}, got)
	})
}

// As many as the error says fit, on every kind of server.
func TestAcceptance165PutAllSaysHowManyFit(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		for size, want := range map[int]int{100_000: 10, 10_000: 90} {
			q := zkqueue.New[string](v.Session(), fmt.Sprint(path, size), zksync.WithCodec(zksync.Raw))
			values := make([]string, 2*want)
			for i := range values {
				values[i] = strings.Repeat("x", size)
			}
			err := q.PutAll(t.Context(), values)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			fit := fitIn(t, err)
			require.Greater(t, fit, want/2)
			require.ErrorIs(t, q.PutAll(t.Context(), values[:fit+1]), zksync.ErrMisuse)
			n, err := q.Len(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
			require.NoError(t, q.PutAll(t.Context(), values[:fit]), "%d of %d bytes", fit, size)
			n, err = q.Len(t.Context())
			require.NoError(t, err)
			require.Equal(t, fit, n)
		}
	})
}

// Of the shortest elements the names take most of the request. On real servers the removal of so many nodes takes long.
func TestThousandsOfElementsFitIntoOnePutAll(t *testing.T) {
	each := proving.InProcess
	if proving.Full {
		each = proving.EachAlone
	}
	each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		fit := fitIn(t, q.PutAll(t.Context(), make([]int, 12_000), zkqueue.WithPriority(math.MinInt)))
		require.Greater(t, fit, 3_000)
		require.NoError(t, q.PutAll(t.Context(), make([]int, fit), zkqueue.WithPriority(math.MinInt)))
		require.Equal(t, fit, length(t, q))
	})
}

// fitIn is the number that the error of PutAll says.
func fitIn(t *testing.T, err error) (n int) {
	t.Helper()
	_, text, found := strings.Cut(err.Error(), "of which the first ")
	require.True(t, found, "%v", err)
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func TestAcceptance165PutAllWaitsForRoomForAll(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		bounded := zkqueue.WithCapacity(4)
		q, other := zkqueue.New[int](v.Session(), path, bounded), zkqueue.New[int](v.Session(), path, bounded)
		require.NoError(t, q.PutAll(t.Context(), []int{1, 2}))
		require.ErrorIs(t, q.PutAll(t.Context(), []int{1, 2, 3, 4, 5}), zksync.ErrMisuse)
		waiting := proving.Waits(t.Context(), func(ctx context.Context) error { return q.PutAll(ctx, []int{3, 4, 5}) })
		v.Quiet()
		require.True(t, waiting.Pending(), "there is room for two")
		require.Equal(t, 2, length(t, q))
		require.Equal(t, 1, take(t, other))
		v.Passes(waiting)
		require.Equal(t, []int{2, 3, 4, 5}, all(t, q))
	})
}
