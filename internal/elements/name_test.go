package elements

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheNameOfAnElementTellsWhatItWasPutWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := element{
			priority: rapid.Int().Draw(t, "priority"),
			due:      rapid.Int64Min(0).Draw(t, "due"),
			seq:      rapid.Int32().Draw(t, "number"),
		}
		want.name = namePrefix(want.priority, want.due) + fmt.Sprintf("%010d", want.seq) // as the servers write it
		got, ok := parseElement(want.name)
		require.True(t, ok, want.name)
		require.Equal(t, want, got)
		require.Equal(t, want.name, claimed(claimName(want.name, rapid.Int32Min(1).Draw(t, "attempt"))))
	})
}

func TestOtherNodesAreNotElements(t *testing.T) {
	for _, name := range []string{"", "e", "e.0000000001", "f.0011aabb.0000000001", "e.x1.0011aabb.0000000001",
		"e.p.0011aabb.0000000001", "e.pz.0011aabb.0000000001", "e.d1x.0011aabb.0000000001", "e.0011aabb.", "e.0011aabb.x"} {
		_, ok := parseElement(name)
		require.False(t, ok, name)
	}
}

func TestElementsAreInTheOrderInWhichTheyAreDelivered(t *testing.T) {
	want := []element{
		{priority: -1, seq: 9},
		{seq: 1}, {seq: 2}, {seq: math.MaxInt32 - 1},
		// At the end of the numbers the servers give the last one again and again, or negative ones.
		{seq: math.MaxInt32, czxid: 5}, {seq: math.MinInt32, czxid: 6}, {seq: math.MaxInt32, czxid: 7},
		{priority: 3, seq: 0},
	}
	rapid.Check(t, func(t *rapid.T) {
		got := rapid.Permutation(want).Draw(t, "listing")
		got = sorted(got)
		require.Equal(t, want, got)
	})
}
