package atomic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// register is what a history uses of a number.
type register interface {
	Store(ctx context.Context, v int64) error
	Swap(ctx context.Context, v int64) (int64, error)
	CompareAndSwap(ctx context.Context, old, next int64) (bool, error)
	Add(ctx context.Context, delta int64) (int64, error)
}

// call is a call of it, and what it returned.
type call struct {
	do           string // store, swap, compare, add
	arg, compare int64
	got          int64 // 1 for true
	unknown      bool  // it is not known whether the call changed anything
}

// numberModel is a plain number.
var numberModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		now, c := state.(int64), input.(call)
		next, answer := now, int64(0)
		switch c.do {
		case "store":
			next = c.arg
		case "swap":
			next, answer = c.arg, now
		case "compare":
			if now == c.compare {
				next, answer = c.arg, 1
			}
		case "add":
			next, answer = now+c.arg, now+c.arg
		}
		return c.unknown || answer == c.got, next
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

const (
	historySessions = 5
	historyCalls    = 12
)

// history is one run: five sessions on three servers change a number, while requests are lost, doubled and late, and some
// sessions end. wrap may replace the number by another one.
func history(t *testing.T, seed uint64, wrap func(*zkatomic.Int64) register) (ops []porcupine.Operation, unknown, late int) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		r := rand.New(rand.NewPCG(seed, 0))
		e.Server(2).Create("/atomics", nil, 0, 0)
		var mu sync.Mutex
		var clock atomic.Int64
		sessions := make([]*zksync.Session, historySessions)
		for i := range sessions {
			sessions[i] = e.SessionAt(t, i%3, zksync.WithTimeout(10*time.Second))
		}
		calm := e.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
			mu.Lock()
			defer mu.Unlock()
			return weather(e, r, q, &late)
		})
		do := func(n register, c call) {
			began := clock.Add(1)
			var err error
			switch c.do {
			case "store":
				err = n.Store(context.Background(), c.arg)
			case "swap":
				c.got, err = n.Swap(context.Background(), c.arg)
			case "compare":
				var swapped bool
				if swapped, err = n.CompareAndSwap(context.Background(), c.compare, c.arg); swapped {
					c.got = 1
				}
			case "add":
				c.got, err = n.Add(context.Background(), c.arg)
			}
			ended := clock.Add(1)
			mu.Lock()
			defer mu.Unlock()
			if zksync.Ambiguous(err) { // it may be applied at any later time, or never
				assert.ErrorIs(t, err, zksync.ErrSessionExpired)
				unknown++
				c.unknown, ended = true, 1<<60
			} else {
				assert.NoError(t, err)
			}
			ops = append(ops, porcupine.Operation{Input: c, Call: began, Return: ended})
		}
		var all sync.WaitGroup
		for i, s := range sessions {
			n, own := wrap(zkatomic.NewInt64(s, path)), rand.New(rand.NewPCG(seed, uint64(i)+1))
			all.Go(func() {
				for range historyCalls {
					time.Sleep(time.Duration(own.IntN(300)) * time.Millisecond)
					do(n, call{
						do:  []string{"store", "swap", "compare", "compare", "add", "add"}[own.IntN(6)],
						arg: own.Int64N(4), compare: own.Int64N(4), // few numbers, so that comparing often succeeds
					})
				}
			})
		}
		all.Wait()
		calm()
		time.Sleep(time.Minute)
		do(zkatomic.NewInt64(sessions[0], path), call{do: "add"})
	})
	return ops, unknown, late
}

// weather is what a request of a history meets.
func weather(e *zktest.Ensemble, r *rand.Rand, q *zktest.Request, late *int) (v zktest.Verdict) {
	if !proving.Counts(q) {
		return v
	}
	switch r.IntN(14) {
	case 0:
		v.Fate = zktest.LoseReply
	case 1:
		v.Fate = zktest.LoseRequest
	case 2:
		v.Fate = zktest.Duplicate
	case 3, 4:
		*late++
		v.Queued, v.Delay = true, time.Duration(1+r.IntN(3000))*time.Millisecond
		for range 1 + r.IntN(4) { // round the members, perhaps until it is back at this one
			after := time.Duration(r.IntN(2000)) * time.Millisecond
			time.AfterFunc(after, func() { e.Disconnect(q.Session) })
		}
	case 5:
		if r.IntN(6) == 0 {
			v.Fate = zktest.LoseReply
			time.AfterFunc(time.Duration(r.IntN(3))*time.Millisecond, func() { e.Expire(q.Session) })
		}
	}
	return v
}

func TestAcceptance141RandomHistoriesOfANumberAreLinearizable(t *testing.T) {
	unknown, late := 0, 0
	for seed := range uint64(proving.Rounds(200)) {
		ops, u, l := history(t, seed, func(n *zkatomic.Int64) register { return n })
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(numberModel, ops, time.Minute), "seed %d", seed)
		unknown, late = unknown+u, late+l
	}
	t.Logf("%d calls of unknown outcome, %d late requests", unknown, late)
	require.Positive(t, late)
	require.Positive(t, unknown)
}

// addsAgain is a number whose Add is repeated if its outcome is not known.
type addsAgain struct{ *zkatomic.Int64 }

func (n addsAgain) Add(ctx context.Context, delta int64) (int64, error) {
	for {
		v, err := n.Int64.Add(ctx, delta)
		if !zksync.Ambiguous(err) {
			return v, err
		}
	}
}

// loadsThenStores is a number whose CompareAndSwap is what people write who have none.
type loadsThenStores struct{ *zkatomic.Int64 }

func (n loadsThenStores) CompareAndSwap(ctx context.Context, old, next int64) (bool, error) {
	now, err := n.Load(ctx)
	if err != nil || now != old {
		return false, err
	}
	return true, n.Store(ctx, next)
}

func TestTheModelRefusesTheHistoriesOfBrokenNumbers(t *testing.T) {
	for name, wrap := range map[string]func(*zkatomic.Int64) register{
		"adds again":         func(n *zkatomic.Int64) register { return addsAgain{n} },
		"loads, then stores": func(n *zkatomic.Int64) register { return loadsThenStores{n} },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				ops, _, _ := history(t, seed, wrap)
				if porcupine.CheckOperationsTimeout(numberModel, ops, time.Minute) == porcupine.Illegal {
					return
				}
			}
			t.Fatal("no history was refused")
		})
	}
}
