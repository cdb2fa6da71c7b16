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
	require.Equal(t, uint64(0xf52a15e9a9b5e89b), hash(""))
	require.NotEqual(t, hash("a"), hash("b"))
}

func TestOnlyTheItemsOfAMemberThatLeavesMove(t *testing.T) {
	items := someItems(1000)
	d, l := NewDivision(items), ListOf(items)
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
	d.Add("a", ListOf(items[:50]))
	d.Add("b", decodeList(ListOf(items[25:75]).encode()))
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
