package rounds

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func someItems(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("item-", i))
	}
	return all
}

func (d *Division) ownerIDs() []string {
	d.Owns("", 0)
	return slices.Clone(d.owners)
}

// add adds a worker that divides evenly.
func (d *Division) add(id string, l List) {
	d.Add(id, Part{List: l, Even: true})
	d.Settle()
}

func (d *Division) remove(id string) {
	d.Remove(id)
	d.Settle()
}

// loads are the numbers of items of the workers.
func loads(owners []string) map[string]int {
	n := map[string]int{}
	for _, o := range owners {
		n[o]++
	}
	return n
}

// Programs of all versions must divide alike.
func TestTheHashesAreThoseOfTheLayout(t *testing.T) {
	require.Equal(t, uint64(0xe220a8397b1dcdaf), mix(0x9e3779b97f4a7c15), "the first number of SplitMix64 from 0")
	require.Equal(t, uint64(0xf52a15e9a9b5e89b), Hash(""))
	require.NotEqual(t, Hash("a"), Hash("b"))
}

// With a worker of an earlier version there is no bound, and no item moves between two that stay.
func TestOnlyTheItemsOfAMemberThatLeavesMoveWithoutABound(t *testing.T) {
	items := someItems(1000)
	d, l := NewDivision(items), ListOf(items)
	d.Add("old", Part{List: l})
	d.Settle()
	for w := range 9 {
		before := d.ownerIDs()
		d.add(fmt.Sprint("w", w), l)
		for i, o := range d.ownerIDs() {
			require.True(t, o == before[i] || o == fmt.Sprint("w", w), "an item moves between two members that stay")
		}
	}
	all := d.ownerIDs()
	for w, n := range loads(all) {
		require.InDelta(t, 100, n, 40, w)
	}
	d.remove("w3")
	for i, o := range d.ownerIDs() {
		require.Equal(t, all[i] == "w3", o != all[i])
	}
	d.add("w3", l)
	require.Equal(t, all, d.ownerIDs())
	d.remove("old")
	for w, n := range loads(d.ownerIDs()) {
		require.LessOrEqual(t, n, 112, w)
	}
}

// pairwise is the division as its definition says: the pairs of items and workers by their scores.
func pairwise(items, ids []string) []string {
	type pair struct {
		item, worker int
		score        uint64
	}
	var all []pair
	for i, item := range items {
		for w, id := range ids {
			all = append(all, pair{i, w, mix(Hash(item) ^ Hash(id))})
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	owners, load, extra := make([]string, len(items)), make([]int, len(ids)), len(items)%len(ids)
	for _, p := range all {
		room := len(items)/len(ids) - load[p.worker]
		if owners[p.item] != "" || room < 0 || room == 0 && extra == 0 {
			continue
		}
		if room == 0 {
			extra--
		}
		owners[p.item] = ids[p.worker]
		load[p.worker]++
	}
	return owners
}

// least is how many items must move: those of workers that have left, and what a worker has over the bound.
func least(before []string, ids []string) (n int) {
	bound := (len(before) + len(ids) - 1) / len(ids)
	for id, load := range loads(before) {
		if !slices.Contains(ids, id) {
			n += load
		} else {
			n += max(0, load-bound)
		}
	}
	return n
}

// At each change of a random history the division is that of a program which sees only these workers, no worker has more than the
// bound, and few more items move than must.
func TestTheDivisionIsEvenAndMovesLittleThroughRandomHistories(t *testing.T) {
	total, must := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		items := someItems(1 + rng.IntN(200))
		d, l := NewDivision(items), ListOf(items)
		ids := []string{"w0"}
		d.add("w0", l)
		for n := 1; n < 40; n++ {
			before := d.ownerIDs()
			if k := rng.IntN(len(ids)); len(ids) > 1 && (len(ids) == 12 || rng.IntN(2) == 0) {
				d.remove(ids[k])
				ids = slices.Delete(ids, k, k+1)
			} else {
				ids = append(ids, fmt.Sprint("w", n))
				d.add(ids[len(ids)-1], l)
			}
			after := d.ownerIDs()
			require.Equal(t, pairwise(items, ids), after)
			bound := (len(items) + len(ids) - 1) / len(ids)
			for id, load := range loads(after) {
				require.LessOrEqual(t, load, bound, id)
				require.GreaterOrEqual(t, load, len(items)/len(ids), id)
			}
			moved := differ(before, after)
			low := least(before, ids)
			require.LessOrEqual(t, moved, low+bound+len(ids), "of %d items among %d, at least %d", len(items), len(ids), low)
			total, must = total+moved, must+low
		}
	}
	t.Logf("%d moves, of which %d were necessary", total, must)
	require.Less(t, total, 2*must)
}

// With many members one that comes or goes moves some items between others: no division that depends on the present members only moves the
// fewest each time. What it costs is in docs/group.md.
func TestAMemberThatComesOrGoesMovesFewItemsOfMany(t *testing.T) {
	for _, c := range []struct{ items, workers, join, leave int }{
		{64, 8, 15, 18}, {100, 10, 18, 22}, {1000, 10, 120, 135}, {100, 100, 6, 9}, {200, 100, 10, 15}, {1000, 100, 32, 48},
	} {
		const times = 5
		rng := rand.New(rand.NewPCG(uint64(c.items), uint64(c.workers)))
		join, leave, must, mustLeave := 0, 0, 0, 0
		for range times {
			items, ids := someItems(c.items), make([]string, c.workers)
			d, l := NewDivision(items), ListOf(items)
			for w := range ids {
				ids[w] = fmt.Sprint("w", rng.Uint64())
				d.Add(ids[w], Part{List: l, Even: true})
			}
			d.Settle()
			before := d.ownerIDs()
			d.add("new", l)
			join += differ(before, d.ownerIDs())
			must += least(before, append([]string{"new"}, ids...))
			d.remove("new")
			d.remove(ids[0])
			leave += differ(before, d.ownerIDs())
			mustLeave += least(before, ids[1:])
		}
		t.Logf("%d items, %d members: one that comes moves %.1f of at least %.1f, one that goes %.1f of at least %.1f", c.items, c.workers,
			float64(join)/times, float64(must)/times, float64(leave)/times, float64(mustLeave)/times)
		require.LessOrEqual(t, join, c.join*times)
		require.LessOrEqual(t, leave, c.leave*times)
	}
}

// differ is how many items have another owner.
func differ(before, after []string) (n int) {
	for i := range after {
		if after[i] != before[i] {
			n++
		}
	}
	return n
}

// Members with other items come while some work on the last batch. Each batch is divided evenly, and no item of the last one moves.
func TestMembersWithOtherItemsChangeNothing(t *testing.T) {
	items := someItems(120)
	d, l, next := NewDivision(items), ListOf(items[:100]), ListOf(items[100:])
	d.add("a", l)
	d.add("b", l)
	before := d.ownerIDs()
	for w := range 20 {
		d.add(fmt.Sprint("w", w), next)
		require.Equal(t, before[:100], d.ownerIDs()[:100])
	}
	d.add("idle", nil)
	for id, n := range loads(d.ownerIDs()) {
		require.Equal(t, map[bool]int{true: 50, false: 1}[id < "c"], n, id)
	}
	d.add("c", ListOf(items)) // now they are one set
	for id, n := range loads(d.ownerIDs()[100:]) {
		require.LessOrEqual(t, n, 6, id)
	}
}

// Members may have different lists. The order of events does not matter.
func TestTheDivisionOfDifferentListsDependsOnTheWorkersOnly(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		items := someItems(60)
		parts := map[string]Part{}
		for w := range 2 + rng.IntN(5) {
			var some []string
			for _, item := range items {
				if rng.IntN(3) > 0 {
					some = append(some, item)
				}
			}
			parts[fmt.Sprint("w", w)] = Part{List: ListOf(some), Even: true}
		}
		owner := map[uint64]string{}
		for range parts { // each worker sees its own items, and the workers in some order
			d := NewDivision(items)
			d.Add("gone", Part{List: ListOf(items)})
			d.Settle()
			for other, p := range parts {
				d.Add(other, p)
			}
			d.remove("gone")
			for i, item := range items {
				for other, p := range parts {
					require.True(t, !d.Owns(other, i) || p.List.has(Hash(item)))
				}
				if d.owners[i] != "" {
					if o, known := owner[Hash(item)]; known {
						require.Equal(t, o, d.owners[i])
					}
					owner[Hash(item)] = d.owners[i]
				}
			}
		}
		for _, item := range items {
			listed := false
			for _, p := range parts {
				listed = listed || p.List.has(Hash(item))
			}
			require.Equal(t, listed, owner[Hash(item)] != "", "an item of a list has a worker")
		}
	}
}

// Until it is settled, what a dead worker had belongs to no other, and a failure still moves its item.
func TestADivisionStaysUntilItIsSettled(t *testing.T) {
	items := someItems(12)
	d, l := NewDivision(items), ListOf(items)
	for _, id := range []string{"a", "b", "c"} {
		d.add(id, l)
	}
	before := d.ownerIDs()
	d.Remove("c")
	d.Add("d", Part{List: l, Even: true})
	require.False(t, d.Settled())
	require.False(t, d.Has("d"))
	require.Equal(t, before, d.ownerIDs())
	k := slices.Index(before, "a")
	d.Add("a", Part{List: l, Even: true, Failed: map[uint64]int{Hash(items[k]): 1}})
	require.NotEqual(t, "a", d.ownerIDs()[k])
	d.Remove("d")
	d.Add("c", Part{List: l, Even: true})
	require.True(t, d.Settled())
}

func TestAnItemBelongsToAMemberThatHasItInItsList(t *testing.T) {
	items := someItems(100)
	d := NewDivision(items)
	d.add("a", ListOf(items[:50]))
	d.add("b", decodeList(ListOf(items[25:75]).encode()))
	for i, o := range d.ownerIDs() {
		switch {
		case i < 25:
			require.Equal(t, "a", o)
		case i >= 50 && i < 75:
			require.Equal(t, "b", o)
		case i >= 75:
			require.Empty(t, o)
		}
	}
}

// A failure moves its item, and no other, to the member whose failure is the oldest; that of a member that leaves is remembered.
func TestAnItemBelongsToTheMemberWhoseFailureIsTheOldest(t *testing.T) {
	items := someItems(100)
	d, w := NewDivision(items), NewWorker(Nodes{}, "a", items)
	all := []string{"a", "b", "c"}
	for _, id := range all {
		d.add(id, w.List)
	}
	before, failed := d.ownerIDs(), map[string]map[uint64]int{"a": {}, "b": {}, "c": {}}
	owner := before[7]
	for attempt := 1; attempt < 9; attempt++ {
		failed[owner][Hash(items[7])] = attempt
		digest, told := parse(string(w.Data(failed[owner])))
		require.Equal(t, w.digest, digest)
		require.Equal(t, Part{Even: true, Failed: failed[owner]}, told)
		told.List = w.List
		d.Add(owner, told)
		require.Equal(t, attempt, d.Attempts(7))
		for i, o := range d.ownerIDs() {
			require.True(t, i == 7 || o == before[i])
		}
		next := d.ownerIDs()[7]
		for _, id := range all {
			require.GreaterOrEqual(t, failed[id][Hash(items[7])], failed[next][Hash(items[7])])
		}
		require.NotEqual(t, owner, next)
		owner = next
	}
	for _, id := range all[1:] {
		d.remove(id)
	}
	require.Equal(t, "a", d.ownerIDs()[7])
	require.Equal(t, 8, d.Attempts(7))
}

func TestWhatAWorkerTellsHasABound(t *testing.T) {
	w, failed := NewWorker(Nodes{}, "a", nil), map[uint64]int{}
	for i := range uint64(2 * maxFailed) {
		failed[i<<32] = 1 << 20
	}
	_, all := parse(string(w.Data(failed)))
	require.Len(t, all.Failed, maxFailed)
	for _, malformed := range []string{"", "/", "d/x.1", "d/1", "d/1.x", "d//.", "d/1.99999999999999999999"} {
		_, all := parse(malformed)
		require.Empty(t, all.Failed)
	}
}
