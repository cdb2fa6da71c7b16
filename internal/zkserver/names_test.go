package zkserver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChildrenAreListedInTheOrderOfARealServer(t *testing.T) {
	// Recorded from ZooKeeper 3.8.0: names created in this order, listed in that.
	s := newNameSet(8)
	for _, n := range []string{
		"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "ä", "Aa", "BB", "10", "9",
	} {
		s.add(n)
	}
	require.Equal(t, []string{
		"zeta", "Aa", "BB", "iota", "ä", "delta", "theta", "epsilon", "eta", "alpha", "9", "kappa", "beta", "gamma", "10",
	}, s.list())
}

func TestANameSetIsASet(t *testing.T) {
	s := newNameSet(8)
	want := map[string]bool{}
	for i := range 500 {
		name := fmt.Sprintf("n%d", i*7%300)
		s.add(name)
		want[name] = true
		if i%3 == 0 {
			gone := fmt.Sprintf("n%d", i)
			s.remove(gone)
			delete(want, gone)
		}
		require.Equal(t, len(want), s.len())
	}
	for _, c := range []*nameSet{s, s.clone()} {
		names := c.list()
		require.Len(t, names, len(want))
		for n := range want {
			require.True(t, c.has(n))
			require.True(t, slices.Contains(names, n))
		}
	}
	var none *nameSet
	require.False(t, none.has("x"))
	require.Zero(t, none.len())
	require.Nil(t, none.list())
	none.remove("x")
}

func TestNameHashesAreThoseOfTheJVM(t *testing.T) {
	require.EqualValues(t, 2112, javaHash("Aa"))
	require.EqualValues(t, 2112, javaHash("BB"))
	require.EqualValues(t, 96354, javaHash("abc"))
	require.EqualValues(t, 228, javaHash("ä"))
	require.EqualValues(t, uint32(0xd83d)*31+0xde00, javaHash("\U0001F600"), "over UTF-16 units")
}
