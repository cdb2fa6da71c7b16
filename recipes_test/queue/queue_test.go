package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

const path = "/queues/a"

// put puts elements.
func put(t *testing.T, q *zkqueue.Queue[int], values ...int) {
	t.Helper()
	for _, v := range values {
		require.NoError(t, q.Put(t.Context(), v))
	}
}

func length(t *testing.T, q *zkqueue.Queue[int]) int {
	t.Helper()
	n, err := q.Len(t.Context())
	require.NoError(t, err)
	return n
}

func take(t *testing.T, q *zkqueue.Queue[int]) int {
	t.Helper()
	v, err := q.Take(t.Context())
	require.NoError(t, err)
	return v
}

func receive[T any](t *testing.T, q *zkqueue.Queue[T]) *zkqueue.Delivery[T] {
	t.Helper()
	d, err := q.Receive(t.Context())
	require.NoError(t, err)
	return d
}

func all(t *testing.T, q *zkqueue.Queue[int]) (values []int) {
	t.Helper()
	for v, err := range q.All(t.Context()) {
		require.NoError(t, err)
		values = append(values, v)
	}
	return values
}

// taking is a Take in a goroutine of its own.
func taking(ctx context.Context, q *zkqueue.Queue[int]) (*proving.Attempt, *int) {
	v := new(int)
	return proving.Waits(ctx, func(ctx context.Context) (err error) {
		*v, err = q.Take(ctx)
		return err
	}), v
}

func TestAcceptance079PutPeekTake(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		require.Zero(t, length(t, b))
		_, ok, err := b.Peek(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
		put(t, a, 7)
		require.Equal(t, 1, length(t, b))
		got, ok, err := b.Peek(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 7, got)
		require.Equal(t, 7, take(t, b))
		require.Zero(t, length(t, a))
		_, ok, err = a.TryTake(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
	})
}

func TestAcceptance080FIFO(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		for i := range 20 {
			put(t, []*zkqueue.Queue[int]{a, b}[i%2], i)
		}
		for i := range 20 {
			require.Equal(t, i, take(t, []*zkqueue.Queue[int]{a, b}[i/3%2]))
		}
	})
}

func TestAcceptance081TakeOfAnEmptyQueueEndsWithItsContext(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		require.Zero(t, length(t, q))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := q.Take(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, zksync.Ambiguous(err))
		v.Took(start, 500*time.Millisecond, "the timed Take")
	})
}

func TestAcceptance082TakeWaitsForAPut(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for name, other := range map[string]*zksync.Session{"a goroutine": s, "a session": v.Session()} {
			path := "/queues/" + name[2:]
			q, p := zkqueue.New[int](s, path), zkqueue.New[int](other, path)
			waiting, got := taking(t.Context(), q)
			v.Settled(path+"/zkqueue/takers", 1)
			require.True(t, waiting.Pending())
			put(t, p, 1)
			v.Passes(waiting)
			require.Equal(t, 1, *got, name)
		}
	})
}

func TestAcceptance083ATimedTakeReturnsAtOnceIfThereIsAnElement(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2)
		_, _, err := q.Peek(t.Context())
		require.NoError(t, err)
		for i := 1; i <= 2; i++ {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			got, err := q.Take(ctx)
			cancel()
			require.NoError(t, err)
			require.Equal(t, i, got)
			v.AtOnce(start, "Take")
		}
	})
}

func TestAcceptance084ElementsAreTakenWhileTheyAreIterated(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		put(t, a, 0, 1, 2, 3, 4)
		require.Equal(t, []int{0, 1, 2, 3, 4}, all(t, b))
		n := 0
		for got, err := range a.All(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, n, got)
			if n < 3 {
				require.Equal(t, n, take(t, b))
			}
			n++
		}
		require.Equal(t, 5, n)
		require.Equal(t, []int{3, 4}, all(t, a))
		for range a.All(t.Context()) {
			break
		}
	})
}

func TestAcceptance085ABoundedQueue(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bounded := zkqueue.WithCapacity(2)
		a, b := zkqueue.New[int](v.Session(), path, bounded), zkqueue.New[int](v.Session(), path, bounded)
		put(t, a, 1)
		ok, err := b.Offer(t.Context(), 2)
		require.NoError(t, err)
		require.True(t, ok)
		ok, err = a.Offer(t.Context(), 3)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, 2, length(t, a))

		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err = b.Put(ctx, 3)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, zksync.Ambiguous(err))
		v.Took(start, 100*time.Millisecond, "the timed Put")

		waiting := proving.Waits(t.Context(), func(ctx context.Context) error { return b.Put(ctx, 4) })
		v.Settled(path+"/zkqueue/putters", 1)
		require.True(t, waiting.Pending())
		start = time.Now()
		require.Equal(t, 1, take(t, a))
		v.Passes(waiting)
		v.Within(start, 100*time.Millisecond, "the Put that waited")
		require.Equal(t, []int{2, 4}, all(t, a))
	})
}

func TestAcceptance085ProducersGetRoomInTheirOrder(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var waiting []*proving.Attempt
		for i := range 5 {
			q := zkqueue.New[int](v.Session(), path, zkqueue.WithCapacity(1))
			if i == 0 {
				put(t, q, 0)
				continue
			}
			waiting = append(waiting, proving.Waits(t.Context(), func(ctx context.Context) error { return q.Put(ctx, i) }))
			v.Settled(path+"/zkqueue/putters", i)
		}
		q := zkqueue.New[int](v.Session(), path, zkqueue.WithCapacity(1))
		for i := range 5 {
			require.Equal(t, i, take(t, q))
			if i < 4 {
				v.Passes(waiting[i])
			}
		}
	})
}

func TestAcceptance090AnEmptyPayload(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[[]byte](v.Session(), path, zksync.WithCodec(zksync.Raw))
		for range 2 {
			require.NoError(t, q.Put(t.Context(), nil))
		}
		got, err := q.Take(t.Context())
		require.NoError(t, err)
		require.Empty(t, got)
		d := receive(t, q)
		require.Empty(t, d.Value)
		require.NoError(t, d.Ack(t.Context()))
	})
}

func TestAcceptance091Drain(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		got, err := q.Drain(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, got)
		for i := range 150 {
			put(t, q, i)
		}
		d := receive(t, q)
		require.NoError(t, q.Put(t.Context(), 500, zkqueue.WithDelay(time.Hour)))
		got, err = q.Drain(t.Context(), 0)
		require.NoError(t, err)
		require.Empty(t, got)
		next := 1
		for _, n := range []int{100, 3, 100} {
			got, err = q.Drain(t.Context(), n)
			require.NoError(t, err)
			require.Len(t, got, min(n, 150-next))
			for _, v := range got {
				require.Equal(t, next, v)
				next++
			}
		}
		require.Equal(t, 2, length(t, q), "what is delivered or delayed stays")
		require.NoError(t, d.Ack(t.Context()))
	})
}

func TestReceiveAckNack(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		put(t, a, 1, 2, 3)
		one := receive(t, a)
		require.Equal(t, 1, one.Value)
		require.Equal(t, 1, one.Attempt)
		require.True(t, one.Lease().Valid())
		two := receive(t, b)
		require.Equal(t, 2, two.Value)
		require.Negative(t, one.Lease().Token().Compare(two.Lease().Token()))
		require.Equal(t, 3, length(t, a))

		require.NoError(t, one.Nack(t.Context()))
		require.ErrorIs(t, one.Nack(t.Context()), zksync.ErrReleased)
		require.ErrorIs(t, one.Ack(t.Context()), zksync.ErrReleased)
		require.False(t, one.Lease().Valid())
		again := receive(t, b)
		require.Equal(t, 1, again.Value, "it keeps its place")
		require.Equal(t, 2, again.Attempt)
		require.Positive(t, again.Lease().Token().Compare(two.Lease().Token()))
		require.NoError(t, again.Ack(t.Context()))
		require.ErrorIs(t, again.Ack(t.Context()), zksync.ErrReleased)
		require.ErrorIs(t, again.Lease().Err(), zksync.ErrReleased)
		require.NoError(t, two.Lease().Unlock())
		third := receive(t, a)
		require.Equal(t, 2, third.Value)
		require.NoError(t, third.Ack(t.Context()))
		require.Equal(t, 3, take(t, a))
		require.Zero(t, length(t, a))
		v.Eventually(func() bool { return len(v.Children(path+"/zkqueue/claims")) == 0 }, "claims are left")
	})
}

func TestNackedElementsComeBeforeOthersOfTheSameObject(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2, 3, 4)
		one, two := receive(t, q), receive(t, q)
		require.Equal(t, []int{1, 2}, []int{one.Value, two.Value})
		require.NoError(t, one.Nack(t.Context()))
		one = receive(t, q)
		require.Equal(t, 1, one.Value)
		require.NoError(t, two.Lease().Unlock())
		require.NoError(t, one.Ack(t.Context()))
		for i := 2; i <= 4; i++ {
			require.Equal(t, i, take(t, q))
		}
	})
}

func TestGuardOfADelivery(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put("/out", "")
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		d := receive(t, q)
		require.NoError(t, guarded(t.Context(), d, "1"))
		require.Equal(t, "1", v.Data("/out"))
		require.NoError(t, d.Nack(t.Context()))
		require.ErrorIs(t, guarded(t.Context(), d, "2"), zksync.ErrReleased)
		require.Equal(t, "1", v.Data("/out"))
	})
}

func TestAcceptance148RedeliveryAfterTheConsumersSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		a, b := zkqueue.New[int](s, path), zkqueue.New[int](v.Session(), path)
		put(t, a, 1, 2)
		d := receive(t, a)
		waiting := make([]*proving.Attempt, 2)
		got := make([]*zkqueue.Delivery[int], 2)
		for i := range got {
			waiting[i] = proving.Waits(t.Context(), func(ctx context.Context) (err error) {
				got[i], err = b.Receive(ctx)
				return err
			})
			v.Quiet()
		}
		v.Passes(waiting[0])
		require.Equal(t, 2, got[0].Value)
		require.True(t, waiting[1].Pending())
		v.Server.Expire(s.ID())
		v.Passes(waiting[1])
		require.Equal(t, 1, got[1].Value)
		require.Equal(t, 2, got[1].Attempt)
		<-d.Lease().Done() // else Ack may end the lease before this process hears of the loss, and Nack comes second
		require.ErrorIs(t, d.Ack(t.Context()), zksync.ErrLost)
		require.ErrorIs(t, d.Nack(t.Context()), zksync.ErrLost)
		require.ErrorIs(t, d.Lease().Err(), zksync.ErrLost)
		require.NoError(t, got[1].Ack(t.Context()))
		require.NoError(t, got[0].Ack(t.Context()))
		require.Zero(t, length(t, a))
	})
}

func TestAcceptance150DelayAndPriority(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q, p := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		put(t, p, 3, 4)
		require.NoError(t, p.Put(t.Context(), 6, zkqueue.WithPriority(5)))
		require.NoError(t, p.Put(t.Context(), 1, zkqueue.WithPriority(-5)))
		require.NoError(t, p.Put(t.Context(), 7, zkqueue.WithPriority(5)))
		require.Equal(t, 1, take(t, q))
		require.NoError(t, p.Put(t.Context(), 2, zkqueue.WithPriority(-7))) // q remembers elements that are behind this one
		for _, want := range []int{2, 3, 4, 6, 7} {
			require.Equal(t, want, take(t, q))
		}
		start := time.Now()
		delay := v.Span(time.Minute, 10*time.Second)
		require.NoError(t, p.Put(t.Context(), 1, zkqueue.WithDelay(delay)))
		put(t, p, 2)
		require.Equal(t, 2, take(t, q))
		_, ok, err := q.TryTake(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, 1, length(t, q))
		require.Equal(t, 1, take(t, q))
		v.Took(start, delay, "the delay")
	})
}

// A consumer that remembers elements with priorities above 0 is told of all that go before them.
func TestAPutGoesBeforeRememberedElementsWithHigherPriorities(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for i, opts := range [][]zksync.Option{nil, {zkqueue.WithCapacity(100)}} {
			path := fmt.Sprint(path, i)
			q, p := zkqueue.New[int](v.Session(), path, opts...), zkqueue.New[int](v.Session(), path, opts...)
			for i := range 4 {
				require.NoError(t, p.Put(t.Context(), 10+i, zkqueue.WithPriority(3)))
			}
			require.Equal(t, 10, take(t, q))
			put(t, p, 0)
			require.Equal(t, 0, take(t, q))
			require.Equal(t, 11, take(t, q))
			require.NoError(t, p.Put(t.Context(), 2, zkqueue.WithPriority(2)))
			require.Equal(t, 2, take(t, q))
			require.Equal(t, 12, take(t, q))
		}
	})
}

func TestAcceptance151AnElementThatCannotBeDecoded(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		wrong := zkqueue.New[string](v.Session(), path)
		q := zkqueue.New[int](v.Session(), path)
		ways := map[string]func() error{
			"take":    func() error { _, err := q.Take(t.Context()); return err },
			"try":     func() error { _, _, err := q.TryTake(t.Context()); return err },
			"receive": func() error { _, err := q.Receive(t.Context()); return err },
			"drain":   func() error { _, err := q.Drain(t.Context(), 5); return err },
		}
		for name, way := range ways {
			require.NoError(t, wrong.Put(t.Context(), "no number"))
			node := v.Children(path + "/zkqueue/elements")[0]
			put(t, q, 1)
			_, _, err := q.Peek(t.Context())
			require.ErrorContains(t, err, node)
			require.Equal(t, 2, length(t, q), "Peek removes nothing")
			require.ErrorContains(t, way(), path+"/zkqueue/elements/"+node, name)
			require.Equal(t, 1, take(t, q), name)
			require.Zero(t, length(t, q))
		}
	})
}

// The greatest value that Put takes can be delivered again, also by a process whose nodes take more bytes.
func TestTheGreatestElementIsDeliveredAgain(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for i, path := range []string{"/q", "/" + strings.Repeat("a-long-name", 60)} {
			raw := zksync.WithCodec(zksync.Raw)
			q := zkqueue.New[[]byte](v.Session(), path, raw)
			size := sort.Search(1<<20, func(n int) bool { return errors.Is(q.Put(t.Context(), make([]byte, n)), zksync.ErrMisuse) }) - 1
			require.Greater(t, size, 1_000_000)
			_, err := q.Drain(t.Context(), 100)
			require.NoError(t, err)

			require.NoError(t, q.Put(t.Context(), make([]byte, size), zkqueue.WithPriority(math.MinInt+i)))
			acl := zk.WorldACL(zk.PermAll)
			for n := range 50 {
				acl = append(acl, zk.ACL{Perms: zk.PermRead, Scheme: "ip", ID: fmt.Sprintf("10.0.0.%d", n)})
			}
			others := zkqueue.New[[]byte](v.Session(), path, raw, zksync.WithName(strings.Repeat("n", 100)), zksync.WithACL(acl...))
			for n := range 3 {
				d := receive(t, others)
				require.Equal(t, n+1, d.Attempt)
				require.Len(t, d.Value, size)
				require.NoError(t, d.Nack(t.Context()))
			}
			got, err := q.Take(t.Context())
			require.NoError(t, err)
			require.Len(t, got, size)
		}
	})
}

func TestAcceptance160TheTermsOfAQueue(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		put(t, zkqueue.New[int](s, path), 1)
		ways := map[string]func(q *zkqueue.Queue[int]) error{
			"put":     func(q *zkqueue.Queue[int]) error { return q.Put(t.Context(), 2) },
			"take":    func(q *zkqueue.Queue[int]) error { _, err := q.Take(t.Context()); return err },
			"receive": func(q *zkqueue.Queue[int]) error { _, err := q.Receive(t.Context()); return err },
			"len":     func(q *zkqueue.Queue[int]) error { _, err := q.Len(t.Context()); return err },
			"all": func(q *zkqueue.Queue[int]) (err error) {
				for _, err = range q.All(t.Context()) {
				}
				return err
			},
		}
		for name, way := range ways {
			for what, q := range map[string]*zkqueue.Queue[int]{
				"another capacity": zkqueue.New[int](s, path, zkqueue.WithCapacity(3)),
				"no capacity":      zkqueue.New[int](s, "/other", zkqueue.WithCapacity(0)),
				"no session":       zkqueue.New[int](nil, "/other"),
				"a bad path":       zkqueue.New[int](s, "other"),
				"a wrong option":   zkqueue.New[int](s, "/other", zksync.WithLinger(time.Second)),
			} {
				err := way(q)
				require.ErrorIs(t, err, zksync.ErrMisuse, "%s, %s: %v", name, what, err)
			}
		}
		require.ErrorIs(t, zkqueue.New[func()](s, path).Put(t.Context(), nil), zksync.ErrMisuse)
		big := make([]byte, 1<<20)
		require.ErrorIs(t, zkqueue.New[[]byte](s, "/big", zksync.WithCodec(zksync.Raw)).Put(t.Context(), big), zksync.ErrMisuse)
	})
}
