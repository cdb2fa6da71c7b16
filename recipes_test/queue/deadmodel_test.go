package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// The specification of workers and dead letters. An element is in the queue, free or delivered for the nth time, or a dead letter, or gone.
//
//   - put(v), and redrive(v) of a dead letter, make it free, with no delivery.
//   - works(v, n) needs it free, and its delivery n to be a later one than all before.
//   - What becomes of it is not told to the function: ends may acknowledge it, fails may free it or make it a dead letter from the last
//     attempt on, at any time after the function has returned, or never; a lost lease frees it at any time.
//   - buries(v) is a delivery after the last attempt, without a function.
//   - isDead(v) needs that it is a dead letter; isGone(v) and isLeft(v) need that at the end it is gone, or in the queue.
//
// Each element has a history of its own.
type stage struct {
	n    int // of its newest delivery
	busy bool
	dead bool
}

type deed int

const (
	workPut deed = iota
	workMayPut
	works
	workEnds
	workFails
	workFrees
	workBuries
	workRedrives
	workMayRedrive
	workIsDead
	workIsGone
	workIsLeft
)

type workStep struct {
	do   deed
	v, n int
}

const lastAttempt = 2

var workModel = porcupine.Model{
	Init: func() any { return map[int]stage{} },
	Partition: func(ops []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[int][]porcupine.Operation{}
		for _, o := range ops {
			v := o.Input.(workStep).v
			of[v] = append(of[v], o)
		}
		return slices.Collect(maps.Values(of))
	},
	Step: func(state, input, _ any) (bool, any) {
		q, a := maps.Clone(state.(map[int]stage)), input.(workStep)
		s, there := q[a.v]
		holds := there && !s.dead && s.busy && s.n == a.n
		switch a.do {
		case workPut, workMayPut:
			q[a.v] = stage{}
			return true, q
		case works:
			q[a.v] = stage{n: a.n, busy: true}
			return there && !s.dead && !s.busy && a.n > s.n && a.n <= lastAttempt, q
		case workEnds:
			if holds {
				delete(q, a.v)
			}
			return true, q
		case workFails:
			if holds {
				q[a.v] = stage{n: a.n, dead: a.n == lastAttempt}
			}
			return true, q
		case workFrees:
			if holds {
				q[a.v] = stage{n: a.n}
			}
			return true, q
		case workBuries:
			if there && !s.dead && !s.busy && s.n >= 0 {
				q[a.v] = stage{dead: true}
			}
			return true, q
		case workRedrives, workMayRedrive:
			if there && s.dead {
				q[a.v] = stage{}
				return true, q
			}
			return a.do == workMayRedrive, q
		}
		switch a.do {
		case workIsDead:
			return there && s.dead, q
		case workIsGone:
			return !there, q
		}
		return there && !s.dead, q
	},
	Equal: func(a, b any) bool { return maps.Equal(a.(map[int]stage), b.(map[int]stage)) },
	DescribeOperation: func(input, _ any) string {
		a := input.(workStep)
		return fmt.Sprintf("%d: %d/%d", a.do, a.v, a.n)
	},
}

// workRecord is a history of workers, whose functions fail at random, of producers, and of an operator.
type workRecord struct {
	history
	shirks bool // the functions report success where the record has a failure
}

func (h *workRecord) record(client int, call, ret int64, a workStep) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: a, Call: call, Return: ret})
}

// worker is one process.
func (h *workRecord) worker(ctx context.Context, id int, q *zkqueue.Queue[int], rng *rand.Rand) error {
	return q.Work(ctx, 1, func(ctx context.Context, d *zkqueue.Delivery[int]) error {
		call := h.now()
		h.record(id, 0, call, workStep{works, d.Value, d.Attempt}) // it was received before
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		end := h.now()
		h.record(id, call, never, workStep{workFrees, d.Value, d.Attempt}) // the lease may be lost, also behind the function
		if rng.IntN(2) == 0 {
			h.record(id, end, never, workStep{workFails, d.Value, d.Attempt})
			if !h.shirks {
				return errors.New("it fails")
			}
			return nil
		}
		h.record(id, end, never, workStep{workEnds, d.Value, d.Attempt})
		return nil
	}, zkqueue.WithMaxAttempts(lastAttempt), zkqueue.WithBackOff(100*time.Millisecond, 200*time.Millisecond))
}

// operator puts, counts and redrives.
func (h *workRecord) operator(ctx context.Context, id int, q *zkqueue.Queue[int], rng *rand.Rand) {
	for i := range 8 {
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		call := h.now()
		switch rng.IntN(3) {
		case 0:
			h.redrive(ctx, id, q)
		default:
			v := 100*id + i
			switch err := q.Put(ctx, v); {
			case err == nil:
				h.record(id, call, h.now(), workStep{do: workPut, v: v})
			case zksync.Ambiguous(err):
				h.record(id, call, never, workStep{do: workMayPut, v: v})
			}
		}
	}
}

// redrive redrives one dead letter.
func (h *workRecord) redrive(ctx context.Context, id int, q *zkqueue.Queue[int]) {
	call := h.now()
	for d, err := range q.Dead().All(ctx) {
		if err != nil {
			return
		}
		v, _ := strconv.Atoi(string(d.Data))
		h.record(id, call, h.now(), workStep{do: workIsDead, v: v})
		call := h.now()
		switch err := q.Dead().Redrive(ctx, d.ID); {
		case err == nil:
			h.record(id, call, h.now(), workStep{do: workRedrives, v: v})
		case zksync.Ambiguous(err):
			h.record(id, call, never, workStep{do: workMayRedrive, v: v})
		}
		return
	}
}

// recordWork plays a history with faults.
func recordWork(t *testing.T, v *proving.Env, seed uint64, faults, shirks bool) []porcupine.Operation {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	h := &workRecord{shirks: shirks}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var workers, operators sync.WaitGroup
	var ids []int64
	for i := range 4 {
		s := v.Session(zksync.WithTimeout(4 * time.Second))
		ids = append(ids, s.ID())
		own := rand.New(rand.NewPCG(seed, uint64(20+i)))
		q := zkqueue.New[int](s, path)
		if i < 2 {
			workers.Go(func() { require.NoError(t, h.worker(ctx, i, q, own)) })
		} else {
			operators.Go(func() { h.operator(ctx, i, q, own) })
		}
	}
	for range 5 {
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
		if !faults {
			continue
		}
		id := ids[rng.IntN(len(ids))]
		switch rng.IntN(3) {
		case 0:
			v.Server.Expire(id)
		case 1:
			v.Server.Disconnect(id)
		default:
			heal := v.Server.DropReplies(id)
			time.AfterFunc(time.Duration(rng.IntN(300))*time.Millisecond, heal)
		}
	}
	operators.Wait()
	time.Sleep(20 * time.Second) // what is lost comes again
	cancel()
	workers.Wait()
	v.Later()
	h.looks(t, zkqueue.New[int](v.Session(), path))
	return h.ops
}

// looks records what is there at the end.
func (h *workRecord) looks(t *testing.T, q *zkqueue.Queue[int]) {
	call, states := h.now(), map[int]deed{}
	for _, o := range h.ops {
		states[o.Input.(workStep).v] = workIsGone
	}
	for _, v := range all(t, q) {
		require.Equal(t, workIsGone, states[v], "%d is there, or twice", v)
		states[v] = workIsLeft
	}
	for _, d := range letters(t, q) {
		v, err := strconv.Atoi(string(d.Data))
		require.NoError(t, err)
		require.Equal(t, workIsGone, states[v], "%d is in the queue and a dead letter, or twice", v)
		states[v] = workIsDead
	}
	for v, do := range states {
		h.record(9, call, h.now(), workStep{do: do, v: v})
	}
}

// withLosses adds to a history what no caller sees: an element that is lost may be free, and it may be a dead letter when its last attempt
// was lost.
func withLosses(ops []porcupine.Operation) (all []porcupine.Operation) {
	for _, o := range ops {
		a := o.Input.(workStep)
		all = append(all, o)
		if a.do == works && a.n == lastAttempt {
			all = append(all, porcupine.Operation{ClientId: 10, Input: workStep{workBuries, a.v, a.n}, Call: o.Return, Return: never})
		}
	}
	return all
}

func TestAcceptance171HistoriesOfWorkersHaveEachElementOnce(t *testing.T) {
	dead, redriven := 0, 0
	for seed := range uint64(proving.Rounds(40)) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ops := withLosses(recordWork(t, v, seed, true, false))
			require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(workModel, ops, time.Minute), "seed %d: %d operations", seed, len(ops))
			for _, o := range ops {
				switch a := o.Input.(workStep); a.do {
				case workIsDead:
					dead++
				case workRedrives:
					redriven++
				}
			}
		})
	}
	if proving.Modelled(t) {
		require.Positive(t, dead)
		require.Positive(t, redriven)
		t.Log("dead letters that were seen:", dead, "redriven:", redriven)
	}
}

// The model is worth something only if it rejects what is wrong: here failures are acknowledged.
func TestTheModelOfWorkersRejectsAnAckOfAFailure(t *testing.T) {
	rejected := 0
	for seed := range uint64(10) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ops := withLosses(recordWork(t, v, seed, false, true))
			if porcupine.CheckOperationsTimeout(workModel, ops, time.Minute) == porcupine.Illegal {
				rejected++
			}
		})
	}
	if proving.Modelled(t) {
		require.GreaterOrEqual(t, rejected, 5, "of 10 histories")
	}
}
