package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// The specification: a FIFO queue with acknowledgement.
//
//   - put(v) adds v at the end.
//   - receive(v, n) needs v to be the first that is free, and its delivery n to be a later one than all
//     before. (A Receive that goes on in a new session leaves out the number that it had in the old one.)
//   - take(v) needs v to be the first that is free, and removes it; without a v it needs that nothing is free.
//   - ack(v, n) needs v to be delivered for the nth time, and removes it.
//   - tooLate(v, n), an Ack that returned ErrLost, needs that v is not.
//   - frees(v, n) ends that delivery: a Nack, or the loss of a session. A loss may happen at any time after the delivery.
//   - What has an unknown outcome may happen at any time later, or never.
type action int

const (
	puts action = iota
	receives
	takes
	findsNothing
	acks
	tooLate
	frees
	mayPut
	mayAck
	mayTake
)

var actionNames = [...]string{"put", "receive", "take", "nothing to take", "ack", "ack, too late", "free", "put?", "ack?", "take?"}

type step struct {
	do   action
	v, n int
}

// entry is an element of the state.
type entry struct {
	v, n int // n is the number of its deliveries
	busy bool
}

var queueModel = porcupine.Model{
	Init: func() any { return []entry(nil) },
	Step: func(state, input, _ any) (bool, any) {
		q, a := slices.Clone(state.([]entry)), input.(step)
		first := slices.IndexFunc(q, func(e entry) bool { return !e.busy })
		at := slices.IndexFunc(q, func(e entry) bool { return e.v == a.v })
		holds := at >= 0 && q[at].busy && q[at].n == a.n
		switch a.do {
		case puts, mayPut:
			return true, append(q, entry{v: a.v})
		case receives:
			if first < 0 || first != at || q[at].n >= a.n {
				return false, q
			}
			q[at].n, q[at].busy = a.n, true
			return true, q
		case takes:
			if first < 0 || first != at {
				return false, q
			}
			return true, slices.Delete(q, at, at+1)
		case findsNothing:
			return first < 0, q
		case acks:
			if !holds {
				return false, q
			}
			return true, slices.Delete(q, at, at+1)
		case tooLate:
			return !holds, q
		case frees:
			if holds {
				q[at].busy = false
			}
			return true, q
		case mayAck:
			if holds {
				q = slices.Delete(q, at, at+1)
			}
			return true, q
		default: // mayTake
			if first >= 0 {
				q = slices.Delete(q, first, first+1)
			}
			return true, q
		}
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]entry), b.([]entry)) },
	DescribeOperation: func(input, _ any) string {
		a := input.(step)
		return fmt.Sprintf("%s %d/%d", actionNames[a.do], a.v, a.n)
	},
}

// never is the return time of an operation that nobody knows the end of.
const never = math.MaxInt64

// history records operations. Its clock counts calls and returns, because in virtual time many of them are at one instant.
type history struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (h *history) now() int64 { return h.clock.Add(1) }

func (h *history) add(client int, call, ret int64, a step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: a, Call: call, Return: ret})
}

// variant is how a client uses the queue; the broken ones do something else than they record.
type variant struct {
	put func(ctx context.Context, q *zkqueue.Queue[int], v int) error
	ack func(ctx context.Context, d *zkqueue.Delivery[int]) error
}

var right = variant{
	put: func(ctx context.Context, q *zkqueue.Queue[int], v int) error { return q.Put(ctx, v) },
	ack: func(ctx context.Context, d *zkqueue.Delivery[int]) error { return d.Ack(ctx) },
}

// client makes random calls and records them.
func (h *history) client(ctx context.Context, id int, q *zkqueue.Queue[int], rng *rand.Rand, as variant) {
	for i := range 8 {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		call := h.now()
		switch rng.IntN(5) {
		case 0, 1:
			v := 100*id + i + 1
			switch err := as.put(ctx, q, v); {
			case err == nil:
				h.add(id, call, h.now(), step{do: puts, v: v})
			case zksync.Ambiguous(err):
				h.add(id, call, never, step{do: mayPut, v: v})
			}
		case 2:
			switch v, ok, err := q.TryTake(ctx); {
			case err == nil && ok:
				h.add(id, call, h.now(), step{do: takes, v: v})
			case err == nil:
				h.add(id, call, h.now(), step{do: findsNothing})
			case zksync.Ambiguous(err):
				h.add(id, call, never, step{do: mayTake})
			}
		default:
			h.work(ctx, id, q, rng, as)
		}
	}
}

// work receives an element, and acknowledges it or gives it back.
func (h *history) work(ctx context.Context, id int, q *zkqueue.Queue[int], rng *rand.Rand, as variant) {
	call := h.now()
	d, err := q.Receive(ctx)
	if err != nil {
		return // at the end of the history
	}
	got := h.now()
	h.add(id, call, got, step{receives, d.Value, d.Attempt})
	time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
	call = h.now()
	if rng.IntN(3) == 0 {
		err := d.Nack(context.WithoutCancel(ctx))
		ret := int64(never)
		if err == nil {
			ret = h.now()
		}
		h.add(id, call, ret, step{frees, d.Value, d.Attempt})
		if errors.Is(err, zksync.ErrLost) {
			h.add(id, got, never, step{frees, d.Value, d.Attempt})
		}
		return
	}
	err = as.ack(context.WithoutCancel(ctx), d)
	switch {
	case err == nil:
		h.add(id, call, h.now(), step{acks, d.Value, d.Attempt})
	case zksync.Ambiguous(err):
		h.add(id, call, never, step{mayAck, d.Value, d.Attempt})
		h.add(id, got, never, step{frees, d.Value, d.Attempt})
	case errors.Is(err, zksync.ErrLost):
		h.add(id, got, never, step{frees, d.Value, d.Attempt})
		h.add(id, call, h.now(), step{tooLate, d.Value, d.Attempt})
	}
}

// record makes a history of five sessions. A Receive that is cut short may hold an element for a moment, of which nothing
// is recorded. So none is: there are more elements until each client has got what it waits for.
func record(t *testing.T, v *proving.Env, seed uint64, faults bool, as variant) []porcupine.Operation {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	h := new(history)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var ids []int64
	var heals []func()
	for i := range 5 {
		s := v.Session(zksync.WithTimeout(4 * time.Second))
		ids = append(ids, s.ID())
		own := rand.New(rand.NewPCG(seed, uint64(10+i)))
		q := zkqueue.New[int](s, path)
		wg.Go(func() { h.client(ctx, i, q, own, as) })
	}
	for range 6 {
		time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		if !faults {
			continue
		}
		id := ids[rng.IntN(len(ids))]
		switch rng.IntN(4) {
		case 0:
			v.Server.Expire(id)
		case 1:
			v.Server.Disconnect(id)
		case 2:
			heal := v.Server.DropReplies(id)
			heals = append(heals, heal)
			time.AfterFunc(time.Duration(rng.IntN(300))*time.Millisecond, heal)
		case 3:
			heal := v.Server.Partition(id)
			heals = append(heals, heal)
			time.AfterFunc(time.Duration(rng.IntN(6000))*time.Millisecond, heal)
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	q := zkqueue.New[int](v.Session(), path)
	for i := 1; ; i++ {
		select {
		case <-done:
			for _, heal := range heals {
				heal()
			}
			v.Later() // a request that was lost may be under way
			return h.ops
		case <-time.After(time.Second):
			call := h.now()
			require.NoError(t, q.Put(ctx, 1000+i))
			h.add(5, call, h.now(), step{do: puts, v: 1000 + i})
		}
	}
}

func TestAcceptance086HistoriesAreThoseOfAFIFOQueue(t *testing.T) {
	most, lost, again := 0, 0, 0
	for seed := range uint64(proving.Rounds(200)) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ops := record(t, v, seed, true, right)
			result := porcupine.CheckOperationsTimeout(queueModel, ops, time.Minute)
			require.Equal(t, porcupine.Ok, result, "seed %d: %s", seed, told(ops))
			most = max(most, len(ops))
			for _, o := range ops {
				a := o.Input.(step)
				if a.do == tooLate {
					lost++
				}
				if a.do == receives && a.n > 1 {
					again++
				}
			}
		})
	}
	if proving.Modelled(t) {
		require.Greater(t, most, 20)
		require.Positive(t, again, "nothing was delivered twice")
		t.Log("acks that came too late:", lost, "deliveries after the first:", again)
	}
}

// The model is worth something only if it rejects what is wrong.
func TestTheModelRejectsBrokenQueues(t *testing.T) {
	for name, broken := range map[string]variant{
		"an ack that the servers do not see": {
			put: right.put,
			ack: func(ctx context.Context, d *zkqueue.Delivery[int]) error { return d.Nack(ctx) },
		},
		"the last one first": {
			put: func(ctx context.Context, q *zkqueue.Queue[int], v int) error {
				return q.Put(ctx, v, zkqueue.WithPriority(-int(time.Now().UnixMilli()%1e9)))
			},
			ack: right.ack,
		},
		"an element that is put twice": {
			put: func(ctx context.Context, q *zkqueue.Queue[int], v int) error {
				return errors.Join(q.Put(ctx, v), q.Put(ctx, v))
			},
			ack: right.ack,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rejected := 0
			for seed := range uint64(10) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ops := record(t, v, seed, false, broken)
					if porcupine.CheckOperationsTimeout(queueModel, ops, time.Minute) == porcupine.Illegal {
						rejected++
					}
				})
			}
			if proving.Modelled(t) {
				require.GreaterOrEqual(t, rejected, 5, "of 10 histories")
			}
		})
	}
}

func told(ops []porcupine.Operation) (story string) {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range ops {
		story += fmt.Sprintf("\n%d: %d-%d %s", o.ClientId, o.Call, o.Return, queueModel.DescribeOperation(o.Input, nil))
	}
	return story
}
