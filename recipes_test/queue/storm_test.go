package queue_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// fullness follows how many elements there are, at each commit.
type fullness struct {
	mu        sync.Mutex
	now, most int
}

func (f *fullness) follow(srv *zktest.Server) {
	srv.OnCommit(func(x zktest.Txn) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range x.Changes {
			if !strings.HasPrefix(c.Path, path+"/zkqueue/elements/") {
				continue
			}
			switch c.Kind {
			case zktest.Created:
				f.now++
			case zktest.Deleted:
				f.now--
			}
		}
		f.most = max(f.most, f.now)
	})
}

// storm has producers and consumers work while sessions end and connections break.
func storm(t *testing.T, v *proving.Env, seed uint64, capacity, producers, consumers int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	story := fmt.Sprintf("seed %d", seed)
	var opts []zksync.Option
	if capacity > 0 {
		opts = append(opts, zkqueue.WithCapacity(capacity))
	}
	var full fullness
	full.follow(v.Server)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l := newLedger()
	var sessions []*zksync.Session
	var workers, wg sync.WaitGroup
	for i := range producers + consumers {
		s := v.Session(zksync.WithTimeout(6 * time.Second))
		sessions = append(sessions, s)
		q := zkqueue.New[int](s, path, opts...)
		switch {
		case i < producers:
			workers.Go(func() { l.produce(ctx, q, i, 30) })
		default:
			work := time.Duration(rng.IntN(800)) * time.Millisecond
			for j := range 1 + i%2 { // two goroutines of the same session
				wg.Go(func() { l.consume(ctx, q, fmt.Sprint("consumer ", i, ".", j), work) })
			}
		}
	}
	for range 40 {
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
		id := sessions[rng.IntN(len(sessions))].ID()
		switch rng.IntN(4) {
		case 0:
			v.Server.Expire(id)
		case 1:
			v.Server.Disconnect(id)
		case 2:
			heal := v.Server.DropReplies(id)
			time.AfterFunc(time.Second, heal)
		case 3:
			heal := v.Server.Partition(id)
			time.AfterFunc(time.Duration(rng.IntN(8000))*time.Millisecond, heal)
		}
	}
	workers.Wait()
	v.Later()
	stop()
	wg.Wait()
	q := zkqueue.New[int](v.Session(), path, opts...)
	l.check(t, all(t, q), story)
	require.Empty(t, all(t, q), "%s: consumers have stalled", story)
	if capacity > 0 {
		require.LessOrEqual(t, full.most, capacity, story)
		require.Equal(t, full.most, capacity, "%s: it was never full", story)
	}
}

func TestAcceptance086And135ProducersAndConsumersInAStorm(t *testing.T) {
	for seed := range uint64(proving.Rounds(20)) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) { storm(t, v, seed, 0, 3, 4) })
	}
}

func TestAcceptance149TheCapacityHoldsInAStorm(t *testing.T) {
	for seed := range uint64(proving.Rounds(20)) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) { storm(t, v, seed, 3, 10, 2) })
	}
}

// On real servers sessions end, too, and connections break.
func TestAcceptance086ProducersAndConsumers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		l := newLedger()
		var producers, consumers sync.WaitGroup
		var sessions []*zksync.Session
		for i := range 6 {
			s := v.Session()
			q := zkqueue.New[int](s, path)
			if i < 3 {
				producers.Go(func() { l.produce(ctx, q, i, 30) })
				continue
			}
			sessions = append(sessions, s)
			consumers.Go(func() { l.consume(ctx, q, fmt.Sprint("consumer ", i), time.Millisecond) })
		}
		v.Disconnect(sessions[1])
		v.Expire(sessions[0])
		producers.Wait()
		q := zkqueue.New[int](v.Session(), path)
		v.Eventually(func() bool {
			if v.Virtual {
				time.Sleep(time.Second)
			}
			return length(t, q) == 0
		}, "elements are left")
		stop()
		consumers.Wait()
		l.check(t, all(t, q), "at the end")
	})
}

func TestAcceptance087ACancelledPutNeverBecomesVisible(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		q := zkqueue.New[int](s, path, zkqueue.WithCapacity(1))
		put(t, q, 1)
		ok, err := q.Offer(t.Context(), 2)
		require.NoError(t, err)
		require.False(t, ok)
		ctx, cancel := context.WithCancel(t.Context())
		waiting := proving.Waits(ctx, func(ctx context.Context) error { return q.Put(ctx, 3) })
		v.Settled(path+"/zkqueue/putters", 1)
		cancel()
		require.False(t, zksync.Ambiguous(v.Failed(waiting)))
		require.Equal(t, 1, take(t, q))
		v.Later()
		require.Zero(t, length(t, q))

		heal := v.Server.Partition(s.ID())
		time.Sleep(5 * time.Second)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = q.Offer(ctx, 4)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		heal()
		v.Later()
		if !zksync.Ambiguous(err) {
			require.Zero(t, length(t, q))
		}
	})
}

// A request that is under way when the caller gives up may be applied: the error says so, and the caller can tell.
func TestAcceptance087APutUnderWayIsAmbiguous(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		require.Zero(t, length(t, q))
		for _, soon := range []bool{true, false} {
			delay := time.Second
			if soon {
				delay = 20 * time.Millisecond
			}
			held := v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(delay).Times(1))
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			err := q.Put(ctx, 1)
			cancel()
			held.Remove()
			v.Later()
			if soon {
				require.NoError(t, err, "the answer came soon enough")
				require.Equal(t, 1, take(t, q))
				continue
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, zksync.Ambiguous(err))
		}
	})
}

// The same for Take: an element that was removed is returned, or the error says that it may be lost.
func TestATakeUnderWayReturnsItsElementOrIsAmbiguous(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		for _, soon := range []bool{true, false} {
			put(t, q, 1)
			delay := time.Second
			if soon {
				delay = 20 * time.Millisecond
			}
			held := v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(delay).Times(1))
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			got, err := q.Take(ctx)
			cancel()
			held.Remove()
			if soon {
				require.NoError(t, err)
				require.Equal(t, 1, got)
				continue
			}
			require.True(t, zksync.Ambiguous(err))
			v.Later()
			require.Zero(t, length(t, q))
		}
	})
}

// Receive holds nothing when it has failed.
func TestAReceiveUnderWayGivesItsElementBack(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		held := v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(time.Second).Times(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := q.Receive(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, zksync.Ambiguous(err))
		held.Remove()
		v.Later()
		d := receive(t, q)
		require.Equal(t, 2, d.Attempt)
		require.NoError(t, d.Ack(t.Context()))
	})
}

func TestAnAckUnderWayGoesOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		d := receive(t, q)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, d.Ack(ended), context.Canceled)
		require.False(t, zksync.Ambiguous(d.Ack(ended)), "it has done nothing")
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(time.Second).Times(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := d.Ack(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, zksync.Ambiguous(err))
		require.ErrorIs(t, d.Nack(t.Context()), zksync.ErrReleased)
		require.Len(t, v.Children(path+"/zkqueue/elements"), 1)
		v.Later()
		require.Zero(t, length(t, q))
		require.Empty(t, v.Children(path+"/zkqueue/claims"))
	})
}

func TestAcceptance089TwoLocalAndOneRemoteConsumer(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		local, remote, p := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		got := make(chan int)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, q := range []*zkqueue.Queue[int]{local, remote, local} {
			wg.Go(func() {
				for {
					n, err := q.Take(ctx)
					if err != nil {
						return
					}
					got <- n
				}
			})
		}
		for i := range 60 {
			put(t, p, i)
			require.Equal(t, i, <-got)
		}
		cancel()
		wg.Wait()
	})
}

func TestAcceptance150DelayAndPriorityAcrossARestart(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := zkqueue.New[int](v.Session(), path)
		start := time.Now()
		put(t, p, 3)
		require.NoError(t, p.Put(t.Context(), 2, zkqueue.WithDelay(time.Hour)))
		require.NoError(t, p.Put(t.Context(), 1, zkqueue.WithPriority(-1)))
		v.Server.Restart()
		q := zkqueue.New[int](v.Session(), path)
		require.Equal(t, 1, take(t, q))
		require.Equal(t, 3, take(t, q))
		require.Equal(t, 2, take(t, q))
		v.Took(start, time.Hour, "the delay")
	})
}

// The clocks of the processes do not matter, and a delayed element has the place of its Put.
func TestADelayedElementHasThePlaceOfItsPut(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		require.NoError(t, q.Put(t.Context(), 1, zkqueue.WithDelay(v.Span(time.Minute, time.Second))))
		put(t, q, 2, 3)
		require.Equal(t, 2, take(t, q))
		time.Sleep(v.Span(time.Minute, time.Second) + 10*time.Millisecond)
		require.Equal(t, 1, take(t, q))
		require.Equal(t, 3, take(t, q))
	})
}

// The answer that tells the time comes late, for example after a disconnect. The elements do not.
func TestASlowAnswerMakesNoDelayedElementLate(t *testing.T) {
	for name, slow := range map[string]func(v *proving.Env, q *zkqueue.Queue[int]){
		"to the consumer": func(*proving.Env, *zkqueue.Queue[int]) {},
		"to a producer of the same object": func(v *proving.Env, q *zkqueue.Queue[int]) {
			require.NoError(v.T, q.Put(v.T.Context(), 3, zkqueue.WithDelay(time.Hour)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				p, q := zkqueue.New[int](proving.Calm(v), path), zkqueue.New[int](proving.Calm(v), path)
				start := time.Now()
				require.NoError(t, p.Put(t.Context(), 1, zkqueue.WithDelay(10*time.Second)))
				require.NoError(t, p.Put(t.Context(), 2, zkqueue.WithDelay(20*time.Second)))
				v.Server.Intercept(zktest.On(zktest.SetData, path+"/zkqueue/writers/*").DelayReply(2 * time.Second).Times(1))
				slow(v, q)
				require.Equal(t, 1, take(t, q))
				v.Took(start, 10*time.Second, "the first delay")
				require.Equal(t, 2, take(t, q))
				v.Took(start, 20*time.Second, "the second delay")
			})
		})
	}
}

func TestPastTheLastSequenceNumberElementsKeepTheirOrder(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q, p := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		put(t, q, 0)
		v.Server.SetSequence(path+"/zkqueue/elements", math.MaxInt32-3)
		for i := 1; i < 10; i++ {
			put(t, p, i)
		}
		require.NoError(t, p.Put(t.Context(), -1, zkqueue.WithPriority(-1)))
		for i := -1; i < 10; i++ {
			d := receive(t, q)
			require.Equal(t, i, d.Value)
			require.NoError(t, d.Ack(t.Context()))
		}
	})
}

func TestNodesThatWereRemovedByHand(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1, 2)
		d := receive(t, q)
		v.Remove(path + "/zkqueue/claims/" + v.Children(path + "/zkqueue/claims")[0])
		other := receive(t, zkqueue.New[int](v.Session(), path))
		require.Equal(t, 1, other.Value)
		require.ErrorIs(t, d.Ack(t.Context()), zksync.ErrLost)
		require.NoError(t, other.Ack(t.Context()))
		for _, name := range v.Children(path + "/zkqueue/elements") {
			v.Remove(path + "/zkqueue/elements/" + name)
		}
		v.Remove(path + "/zkqueue/elements")
		require.ErrorIs(t, q.Put(t.Context(), 3), zksync.ErrBroken)
		_, err := q.Take(t.Context())
		require.ErrorIs(t, err, zksync.ErrBroken)
	})
}

// A foreign node among the elements is left alone.
func TestForeignNodesAmongTheElements(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[int](v.Session(), path)
		put(t, q, 1)
		for _, name := range []string{"x", "e", "e.1", "e.x.y.0000000001", "e.p.y.0000000001", "e.dx.y.0000000001", "e.ab.1"} {
			v.Put(path+"/zkqueue/elements/"+name, "2")
			v.Put(path+"/zkqueue/claims/"+name, "2")
		}
		require.Equal(t, 1, take(t, q))
		_, ok, err := q.TryTake(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
	})
}
