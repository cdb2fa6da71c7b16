package rounds

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func someItems(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("item-", i))
	}
	return all
}

func (d *Division) ownerIDs() (all []string) {
	for _, o := range d.owners {
		all = append(all, o.id)
	}
	return all
}

// Programs of all versions must divide alike.
func TestTheHashesAreThoseOfTheLayout(t *testing.T) {
	require.Equal(t, uint64(0xe220a8397b1dcdaf), mix(0x9e3779b97f4a7c15), "the first number of SplitMix64 from 0")
	require.Equal(t, uint64(0xf52a15e9a9b5e89b), Hash(""))
	require.NotEqual(t, Hash("a"), Hash("b"))
}

func TestOnlyTheItemsOfAMemberThatLeavesMove(t *testing.T) {
	items := someItems(1000)
	d, l := NewDivision(items), Part{List: ListOf(items)}
	for w := range 10 {
		before := d.ownerIDs()
		d.Add(fmt.Sprint("w", w), l)
		for i, o := range d.ownerIDs() {
			require.True(t, o == before[i] || o == fmt.Sprint("w", w), "an item moves between two members that stay")
		}
	}
	all := d.ownerIDs()
	counts := map[string]int{}
	for _, o := range all {
		counts[o]++
	}
	for w, n := range counts {
		require.InDelta(t, 100, n, 40, w)
	}
	d.Remove("w3")
	for i, o := range d.ownerIDs() {
		require.Equal(t, all[i] == "w3", o != all[i])
	}
	d.Add("w3", l)
	require.Equal(t, all, d.ownerIDs())
}

func TestAnItemBelongsToAMemberThatHasItInItsList(t *testing.T) {
	items := someItems(100)
	d := NewDivision(items)
	d.Add("a", Part{List: ListOf(items[:50])})
	d.Add("b", Part{List: decodeList(ListOf(items[25:75]).encode())})
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
		d.Add(id, Part{List: w.List})
	}
	before, failed := d.ownerIDs(), map[string]map[uint64]int{"a": {}, "b": {}, "c": {}}
	owner := before[7]
	for attempt := 1; attempt < 9; attempt++ {
		failed[owner][Hash(items[7])] = attempt
		digest, told := parse(string(w.Data(failed[owner])))
		require.Equal(t, w.digest, digest)
		require.Equal(t, failed[owner], told)
		d.Add(owner, Part{List: w.List, Failed: told})
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
		d.Remove(id)
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
	require.Len(t, all, maxFailed)
	for _, malformed := range []string{"", "/", "d/x.1", "d/1", "d/1.x", "d//.", "d/1.99999999999999999999"} {
		_, all := parse(malformed)
		require.Empty(t, all)
	}
}
