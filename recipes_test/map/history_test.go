package zkmap_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// mapping is what a history uses of a map.
type mapping interface {
	Load(ctx context.Context, k string) (int, bool, error)
	Store(ctx context.Context, k string, v int) error
	StoreMany(ctx context.Context, values map[string]int) error
	LoadOrStore(ctx context.Context, k string, v int) (int, bool, error)
	LoadAndDelete(ctx context.Context, k string) (int, bool, error)
	Delete(ctx context.Context, k string) error
	Swap(ctx context.Context, k string, v int) (int, bool, error)
	CompareAndSwap(ctx context.Context, k string, old, new int) (bool, error)
	CompareAndDelete(ctx context.Context, k string, old int) (bool, error)
	Update(ctx context.Context, k string, f func(int, bool) (int, bool, error)) (int, error)
}

const (
	historySessions = 5
	historyCalls    = 10
)

// history is one run: five sessions on three servers change few keys, while requests are lost, doubled and late, connections
// end, and some sessions, too.
type history struct {
	t     *testing.T
	e     *zktest.Ensemble
	rnd   *rand.Rand
	clock atomic.Int64

	mu      sync.Mutex
	ops     []porcupine.Operation
	unknown int
	late    int
	expired int
}

// keys are three, of which two are in one bucket.
func (h *history) keys() []string {
	second := "a"
	for i := 0; bucket(second) != bucket("k") || second == "k"; i++ {
		second = fmt.Sprint("a", i)
	}
	return []string{"k", second, "other"}
}

// run makes a history. wrap may replace the map by another one.
func run(t *testing.T, seed uint64, wrap func(*zkmap.Map[string, int]) mapping) (h *history) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		h = &history{t: t, e: e, rnd: rand.New(rand.NewPCG(seed, 0))}
		e.Server(2).Create("/maps", nil, 0, 0)
		sessions := make([]*zksync.Session, historySessions)
		for i := range sessions {
			sessions[i] = e.SessionAt(t, i%3, zksync.WithTimeout(10*time.Second))
		}
		calm := e.InterceptFunc(h.judge)
		var all sync.WaitGroup
		for i, s := range sessions {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)+1))
			m := wrap(zkmap.New[string, int](s, mapPath))
			all.Go(func() {
				for n := range historyCalls {
					time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
					h.call(s, m, rnd, 1+i*historyCalls+n)
				}
			})
		}
		all.Wait()
		calm()
		time.Sleep(time.Minute)
		final := zkmap.New[string, int](sessions[0], mapPath)
		for _, key := range h.keys() {
			h.do(sessions[0], final, call{do: loads1, key: key}, context.Background())
		}
	})
	return h
}

// judge is asked about every request.
func (h *history) judge(q *zktest.Request) (v zktest.Verdict) {
	if !proving.Counts(q) {
		return v
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.rnd.IntN(16) {
	case 0:
		v.Fate = zktest.LoseReply
	case 1:
		v.Fate = zktest.LoseRequest
	case 2:
		v.Fate = zktest.Duplicate
	case 3, 4:
		h.late++
		v.Queued, v.Delay = true, time.Duration(1+h.rnd.IntN(3000))*time.Millisecond
		for range 1 + h.rnd.IntN(4) { // round the members, perhaps until it is back at this one
			after := time.Duration(h.rnd.IntN(2000)) * time.Millisecond
			time.AfterFunc(after, func() { h.e.Disconnect(q.Session) })
		}
	case 5:
		if h.rnd.IntN(6) == 0 {
			h.expired++
			after := time.Duration(h.rnd.IntN(3)) * time.Millisecond
			time.AfterFunc(after, func() { h.e.Expire(q.Session) })
			v.Fate = zktest.LoseReply
		}
	}
	return v
}

// call draws a call and makes it. Each call writes a value of its own.
func (h *history) call(s *zksync.Session, m mapping, rnd *rand.Rand, value int) {
	keys := h.keys()
	if rnd.IntN(8) == 0 {
		h.storeMany(m, keys, value)
		return
	}
	c := call{do: action(rnd.IntN(len(actionNames))), key: keys[rnd.IntN(len(keys))], new: value}
	if c.do == comparesAndSwaps || c.do == comparesAndDeletes {
		c.old = h.lastOf(c.key, rnd)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	h.do(s, m, c, ctx)
}

// storeMany stores all keys. That is a Store of each.
func (h *history) storeMany(m mapping, keys []string, value int) {
	all := map[string]int{}
	for i, key := range keys {
		all[key] = value + i*historySessions*historyCalls
	}
	began := h.clock.Add(1)
	err := m.StoreMany(context.Background(), all)
	ended := h.clock.Add(1)
	told := &zkmap.StoreManyError[string]{}
	if err == nil {
		told.Stored = keys
	} else if !errors.As(err, &told) {
		assert.NoError(h.t, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range told.Stored {
		h.ops = append(h.ops, porcupine.Operation{Input: call{do: stores, key: key, new: all[key]}, Call: began, Return: ended})
	}
	for _, key := range told.Unknown {
		h.unknown++
		h.ops = append(h.ops, porcupine.Operation{Input: call{do: stores, key: key, new: all[key], unknown: true}, Call: began, Return: never})
	}
}

// lastOf is a value that somebody has found or written.
func (h *history) lastOf(key string, rnd *rand.Rand) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := 1 + rnd.IntN(historySessions*historyCalls)
	for _, op := range h.ops {
		if c := op.Input.(call); c.key == key && c.new != 0 && c.do != loadsAndDeletes && c.do != deletes {
			old = c.new
		}
	}
	return old
}

// do makes a call, and notes when it began and ended, and what it returned.
func (h *history) do(s *zksync.Session, m mapping, c call, ctx context.Context) {
	began := h.clock.Add(1)
	got, err := c.made(ctx, s, m)
	ended := h.clock.Add(1)
	c.got = got
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
	case zksync.Ambiguous(err):
		assert.ErrorIs(h.t, err, zksync.ErrSessionExpired)
		h.unknown++
		c.unknown, ended = true, never
	default:
		assert.NoError(h.t, err)
	}
	h.ops = append(h.ops, porcupine.Operation{Input: c, Call: began, Return: ended})
}

// made makes the call on a map.
func (c call) made(ctx context.Context, s *zksync.Session, m mapping) (got int, err error) {
	truth := func(is bool, err error) (int, error) {
		if is {
			return 1, err
		}
		return 0, err
	}
	value := func(v int, _ bool, err error) (int, error) { return v, err }
	switch c.do {
	case loads1:
		// Load alone may tell an older value.
		if err := proving.Access(s, mapPath).Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
			if err := record.Synced(ctx, e, mapPath); err != nil {
				return err
			}
			got, err = value(m.Load(ctx, c.key))
			return err
		}); err != nil {
			return 0, err
		}
		return got, err
	case stores:
		return 0, m.Store(ctx, c.key, c.new)
	case loadsOrStores:
		return value(m.LoadOrStore(ctx, c.key, c.new))
	case loadsAndDeletes:
		return value(m.LoadAndDelete(ctx, c.key))
	case deletes:
		return 0, m.Delete(ctx, c.key)
	case swaps:
		return value(m.Swap(ctx, c.key, c.new))
	case comparesAndSwaps:
		return truth(m.CompareAndSwap(ctx, c.key, c.old, c.new))
	case comparesAndDeletes:
		return truth(m.CompareAndDelete(ctx, c.key, c.old))
	default:
		return m.Update(ctx, c.key, func(old int, _ bool) (int, bool, error) { return old + c.new, true, nil })
	}
}

func TestAcceptance141HistoriesOfAMapThroughRandomFaultsAreLinearizable(t *testing.T) {
	unknown, late, expired := 0, 0, 0
	for seed := range uint64(proving.Rounds(200)) {
		h := run(t, seed, func(m *zkmap.Map[string, int]) mapping { return m })
		verdict, info := porcupine.CheckOperationsVerbose(keyModel, h.ops, time.Minute)
		if verdict != porcupine.Ok {
			file, err := os.CreateTemp("", "map-*.html")
			require.NoError(t, err)
			require.NoError(t, porcupine.Visualize(keyModel, info, file))
			t.Fatalf("seed %d: %s, see %s", seed, verdict, file.Name())
		}
		unknown, late, expired = unknown+h.unknown, late+h.late, expired+h.expired
	}
	t.Logf("%d calls of unknown outcome, %d late requests, %d ends of sessions", unknown, late, expired)
	require.Positive(t, unknown)
	require.Positive(t, late)
}

// loadsThenStores is a map whose CompareAndSwap is what people write who have none.
type loadsThenStores struct{ *zkmap.Map[string, int] }

func (m loadsThenStores) CompareAndSwap(ctx context.Context, k string, old, new int) (bool, error) {
	now, ok, err := m.Load(ctx, k)
	if err != nil || !ok || now != old {
		return false, err
	}
	return true, m.Store(ctx, k, new)
}

// addsAgain is a map whose Update forgets that its answer may have been lost.
type addsAgain struct{ *zkmap.Map[string, int] }

func (m addsAgain) Update(ctx context.Context, k string, f func(int, bool) (int, bool, error)) (int, error) {
	v, err := m.Map.Update(ctx, k, f)
	if zksync.Ambiguous(err) {
		return m.Map.Update(ctx, k, f)
	}
	return v, err
}

func TestTheModelRefusesTheHistoriesOfBrokenMaps(t *testing.T) {
	for name, wrap := range map[string]func(*zkmap.Map[string, int]) mapping{
		"loads, then stores": func(m *zkmap.Map[string, int]) mapping { return loadsThenStores{m} },
		"adds again":         func(m *zkmap.Map[string, int]) mapping { return addsAgain{m} },
	} {
		refused := false
		for seed := uint64(0); !refused && seed < 500; seed++ {
			refused = !porcupine.CheckOperations(keyModel, run(t, seed, wrap).ops)
		}
		require.True(t, refused, name)
	}
}
