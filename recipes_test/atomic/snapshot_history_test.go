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

// versioned is the state of a value: what it is, 0 for none, and how often it was changed.
type versioned struct {
	value   int
	version int64
}

// valueCall is a call of a value, and what it returned.
type valueCall struct {
	do      string // store, store-if, load-or-store, delete, load
	arg     int
	version int64
	got     int   // the value; 1 for true
	seen    int64 // the version that a load has returned
	unknown bool
}

// valueModel is a value in memory. Each call that changes something counts.
var valueModel = porcupine.Model{
	Init: func() any { return versioned{} },
	Step: func(state, input, _ any) (bool, any) {
		now, c := state.(versioned), input.(valueCall)
		to := func(value int) versioned { return versioned{value, now.version + 1} }
		next, answer := now, 0
		switch c.do {
		case "store":
			next = to(c.arg)
		case "store-if":
			if now.version == c.version {
				next, answer = to(c.arg), 1
			}
		case "load-or-store":
			if answer = now.value; answer == 0 {
				next, answer = to(c.arg), c.arg
			}
		case "delete":
			if now.value != 0 {
				next = to(0)
			}
		case "load": // at the end, when it is the newest
			return c.got == now.value && c.seen == now.version, now
		}
		return c.unknown || answer == c.got, next
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// stored is what a history uses of a value.
type stored interface {
	LoadSnapshot(ctx context.Context) (zkatomic.Snapshot[int], error)
	Store(ctx context.Context, v int) error
	StoreIf(ctx context.Context, version int64, v int) (bool, error)
	LoadOrStore(ctx context.Context, v int) (int, bool, error)
	Delete(ctx context.Context) error
}

// valueHistory is one run: five sessions on three servers change a value under faults, most often by the version that they have read.
func valueHistory(t *testing.T, seed uint64, wrap func(*zkatomic.Value[int]) stored) (ops []porcupine.Operation, unknown, won int) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		r := rand.New(rand.NewPCG(seed, 7))
		e.Server(2).Create("/atomics", nil, 0, 0)
		var mu sync.Mutex
		var clock atomic.Int64
		late := 0
		var sessions []*zksync.Session
		for i := range historySessions {
			sessions = append(sessions, e.SessionAt(t, i%3, zksync.WithTimeout(10*time.Second)))
		}
		calm := e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			return weather(e, r, q, &late)
		})
		do := func(x stored, c valueCall) {
			began := clock.Add(1)
			err := c.made(x)
			ended := clock.Add(1)
			mu.Lock()
			defer mu.Unlock()
			if zksync.Ambiguous(err) {
				unknown++
				c.unknown, ended = true, 1<<60
			} else {
				assert.NoError(t, err)
			}
			if c.do == "store-if" {
				won += c.got
			}
			ops = append(ops, porcupine.Operation{Input: c, Call: began, Return: ended})
		}
		var all sync.WaitGroup
		for i, s := range sessions {
			x, own := wrap(zkatomic.NewValue[int](s, path)), rand.New(rand.NewPCG(seed, uint64(i)+11))
			all.Go(func() {
				for n := range historyCalls {
					time.Sleep(time.Duration(own.IntN(200)) * time.Millisecond)
					now, err := x.LoadSnapshot(context.Background())
					assert.NoError(t, err)
					do(x, valueCall{
						do:  []string{"store", "store-if", "store-if", "store-if", "load-or-store", "delete"}[own.IntN(6)],
						arg: 1 + i*historyCalls + n, version: now.Version,
					})
				}
			})
		}
		all.Wait()
		calm()
		time.Sleep(time.Minute)
		last := zkatomic.NewValue[int](sessions[0], path)
		_, err := last.LoadSnapshot(context.Background())
		assert.NoError(t, err)
		do(last, valueCall{do: "load"})
	})
	return ops, unknown, won
}

func (c *valueCall) made(x stored) (err error) {
	ctx, done := context.Background(), false
	switch c.do {
	case "store":
		return x.Store(ctx, c.arg)
	case "store-if":
		if done, err = x.StoreIf(ctx, c.version, c.arg); done {
			c.got = 1
		}
	case "load-or-store":
		c.got, _, err = x.LoadOrStore(ctx, c.arg)
	case "delete":
		return x.Delete(ctx)
	case "load":
		now, err := x.LoadSnapshot(ctx)
		c.got, c.seen = now.Value, now.Version
		return err
	}
	return err
}

func TestAcceptance174HistoriesOfAValueAndItsVersionsAreLinearizable(t *testing.T) {
	unknown, won := 0, 0
	for seed := range uint64(proving.Rounds(60)) {
		ops, u, w := valueHistory(t, seed, func(x *zkatomic.Value[int]) stored { return x })
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(valueModel, ops, time.Minute), "seed %d", seed)
		unknown, won = unknown+u, won+w
	}
	t.Logf("%d calls of unknown outcome, %d stores by version", unknown, won)
	require.Positive(t, unknown)
	require.Positive(t, won)
}

// looksThenStores is a value whose StoreIf is what people write who have none.
type looksThenStores struct{ *zkatomic.Value[int] }

func (x looksThenStores) StoreIf(ctx context.Context, version int64, v int) (bool, error) {
	now, err := x.LoadSnapshot(ctx)
	if err != nil || now.Version != version {
		return false, err
	}
	return true, x.Store(ctx, v)
}

func TestTheModelRefusesTheHistoriesOfAValueThatLooksAndThenStores(t *testing.T) {
	for seed := range uint64(60) {
		ops, _, _ := valueHistory(t, seed, func(x *zkatomic.Value[int]) stored { return looksThenStores{x} })
		if porcupine.CheckOperationsTimeout(valueModel, ops, time.Minute) == porcupine.Illegal {
			return
		}
	}
	t.Fatal("no history was refused")
}

func TestAcceptance174And175EveryFaultOfEveryRequestLeavesVersionsExact(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		x, y := zkatomic.NewValue[int](v.Session(), path), zkatomic.NewValue[int](v.Session(), path)
		return func(name string) {
			ctx := t.Context()
			for round := range 2 {
				got, loaded, err := x.LoadOrStore(ctx, 1)
				require.NoError(t, err, name)
				require.Equal(t, 1, got, name)
				require.False(t, loaded, name)
				v.Flush()
				s, err := y.LoadSnapshot(ctx)
				require.NoError(t, err, name)
				require.Equal(t, zkatomic.Snapshot[int]{Value: 1, OK: true, Version: int64(4*round + 1)}, s, name)
				for i, want := range []bool{true, false} {
					stored, err := []*zkatomic.Value[int]{y, x}[i].StoreIf(ctx, s.Version, 1)
					require.NoError(t, err, name)
					require.Equal(t, want, stored, name)
				}
				stored, err := x.StoreIf(ctx, s.Version+1, 2)
				require.NoError(t, err, name)
				require.True(t, stored, name)
				got, loaded, err = y.LoadOrStore(ctx, 3)
				require.NoError(t, err, name)
				require.Equal(t, 2, got, name)
				require.True(t, loaded, name)
				require.NoError(t, y.Delete(ctx), name)
			}
		}
	})
}
