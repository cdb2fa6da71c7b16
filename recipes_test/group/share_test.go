package zkgroup_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

// At most two of the items run at a time, the others have no lease, and they begin in the order of the list.
func TestAcceptance189AMemberRunsNoMoreItemsThanItIsAllowed(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		var mu sync.Mutex
		now, most, all := 0, 0, items(7)
		a := begins(v, v.Session(), "a", all, func(context.Context, string, *zksync.Lease) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			now--
			return nil
		}, zkgroup.WithConcurrency(2), until, zkgroup.WithItemErrors(func(item string, _ int, err error) { t.Error(item, err) }))
		begun := time.Now()
		time.Sleep(500 * time.Millisecond)
		leases := 0
		for _, item := range v.Children(groupPath + "/zkgroup/items") {
			leases += len(v.Children(groupPath + "/zkgroup/items/" + item + "/queue"))
		}
		require.LessOrEqual(t, leases, 2)
		a.ended(t)
		require.Equal(t, 2, most)
		v.Within(begun, 4*time.Second+500*time.Millisecond, "seven items, two at a time")
	})
}

func TestItemsBeginInTheOrderOfTheList(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var order []string
		all := items(20)
		begins(v, v.Session(), "a", all, func(_ context.Context, item string, _ *zksync.Lease) error {
			order = append(order, item)
			return nil
		}, zkgroup.WithConcurrency(1), until).ended(t)
		require.Equal(t, all, order)
	})
}

// An item that always fails, and one that another member does not give up, keep no other from running.
func TestAcceptance189NoItemStarvesForAPlace(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		all := items(6)
		release := make(chan struct{})
		stubborn := begins(v, v.Session(), "stubborn", all, func(_ context.Context, _ string, _ *zksync.Lease) error {
			<-release // whatever its context says
			return proving.ErrTest
		})
		v.Quiet()
		c := newTally()
		run := c.run("b", always(time.Second))
		b := begins(v, v.Session(), "b", append(items(6), "free", "bad", "free2"), func(ctx context.Context, item string, l *zksync.Lease) error {
			if item == "bad" {
				return proving.ErrTest
			}
			return run(ctx, item, l)
		}, zkgroup.WithConcurrency(1))
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"free": 1, "free2": 1}, c.counts())
		close(release)
		stubborn.stop(t)
		time.Sleep(time.Minute)
		require.Equal(t, 8, c.total())
		b.stop(t)
	})
}

// holders are the members that have the items, by what their functions know.
type holders struct {
	mu  sync.Mutex
	now map[string]string
	n   int // counts runs
}

func (h *holders) run(id string) func(context.Context, string, *zksync.Lease) error {
	return func(ctx context.Context, item string, _ *zksync.Lease) error {
		h.mu.Lock()
		h.now[item] = id
		h.n++
		h.mu.Unlock()
		<-ctx.Done()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.now[item] == id {
			delete(h.now, item)
		}
		return context.Cause(ctx)
	}
}

func (h *holders) get() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.now)
}

func (h *holders) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

func (h *holders) moved(before map[string]string) (n int) {
	for item, id := range h.get() {
		if before[item] != id {
			n++
		}
	}
	return n
}

func (h *holders) loads() map[string]int {
	n := map[string]int{}
	for _, id := range h.get() {
		n[id]++
	}
	return n
}

// Members come and go at random. Whenever all is quiet, each item has a member, none has more than its share, and few items have moved.
func TestAcceptance191TheDivisionIsEvenAfterEachChange(t *testing.T) {
	for seed := range uint64(proving.Rounds(4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				rng := rand.New(rand.NewPCG(seed, 191))
				h, all := &holders{now: map[string]string{}}, items(10+rng.IntN(30))
				there := map[string]*assigned{}
				for n := range 14 {
					before := h.get()
					if k := len(there); k > 1 && (k == 6 || rng.IntN(2) == 0) {
						id := slices.Sorted(maps.Keys(there))[rng.IntN(k)]
						there[id].stop(t)
						delete(there, id)
					} else {
						id := fmt.Sprint("m", n)
						there[id] = begins(v, v.Session(), id, all, h.run(id))
					}
					v.Quiet()
					require.Len(t, h.get(), len(all), "each item has a member")
					share := (len(all) + len(there) - 1) / len(there)
					must := 0
					for id, n := range loadsOf(before) {
						if _, stays := there[id]; !stays {
							must += n
						} else {
							must += max(0, n-share)
						}
					}
					for id, n := range h.loads() {
						require.LessOrEqual(t, n, share, id)
					}
					if len(before) > 0 {
						require.LessOrEqual(t, h.moved(before), must+share, "of %d items among %d, at least %d", len(all), len(there), must)
					}
				}
				for _, a := range there {
					a.stop(t)
				}
			})
		})
	}
}

func loadsOf(owners map[string]string) map[string]int {
	n := map[string]int{}
	for _, id := range owners {
		n[id]++
	}
	return n
}

// Two members are there. A third comes, and a fourth before that has settled. Then one dies, while others come and go all the time.
func TestAcceptance190ItemsMoveWhenTheMembersHaveSettled(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		h, all := &holders{now: map[string]string{}}, items(12)
		const d = 10 * time.Second
		member := func(id string) *assigned { return begins(v, v.Session(), id, all, h.run(id), zkgroup.WithSettle(d)) }
		begin := time.Now()
		at := func(t time.Duration) { time.Sleep(time.Until(begin.Add(t))); v.Quiet() }
		member("a")
		v.Quiet()
		require.Equal(t, map[string]int{"a": 12}, h.loads(), "a member that begins alone does not wait")
		at(time.Second)
		member("b")
		at(10 * time.Second)
		require.Equal(t, map[string]int{"a": 12}, h.loads())
		c := member("c")
		at(20*time.Second - time.Millisecond)
		require.Equal(t, map[string]int{"a": 12}, h.loads())
		at(20*time.Second + 500*time.Millisecond) // a server of 3.5 closes connections at first
		require.Equal(t, map[string]int{"a": 4, "b": 4, "c": 4}, h.loads())

		begin = time.Now()
		c.stop(t)
		e := member("e") // it comes and goes, which would put the division off for ever
		for n := time.Duration(1); n <= 8; n++ {
			at(n * 6 * time.Second)
			require.Equal(t, map[string]int{"a": 4, "b": 4}, h.loads(), "after %v", time.Since(begin))
			if n%2 == 1 {
				e.stop(t)
			} else {
				e.begin(v, all, h.run("e"), zkgroup.WithSettle(d))
			}
		}
		at(50*time.Second - time.Millisecond)
		require.Equal(t, map[string]int{"a": 4, "b": 4}, h.loads())
		at(50*time.Second + 500*time.Millisecond)
		require.Equal(t, map[string]int{"a": 6, "b": 6}, h.loads(), "e has been there for 2 s only")
		at(61 * time.Second)
		require.Equal(t, map[string]int{"a": 4, "b": 4, "e": 4}, h.loads())
	})
}

// Its items are its own again, at once, and no other item moves.
func TestAcceptance190AMemberThatIsBackBeforeItsItemsHaveMovedKeepsThem(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		h, all := &holders{now: map[string]string{}}, items(12)
		s := v.Session()
		for _, s := range []*zksync.Session{v.Session(), s} {
			begins(v, s, fmt.Sprint(s.ID()), all, h.run(fmt.Sprint(s.ID())), zkgroup.WithSettle(time.Minute))
		}
		time.Sleep(61 * time.Second)
		before, runs := h.get(), h.count()
		require.Len(t, loadsOf(before), 2)
		v.Expire(s)
		time.Sleep(5 * time.Second)
		require.Equal(t, before, h.get())
		require.Equal(t, runs+6, h.count())
	})
}
