package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
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

// Recorded from a JVM. Nine names with one hash make a table of 16 grow, though it is not full.
func TestNamesWithOneHashMakeASmallTableGrow(t *testing.T) {
	s := newNameSet(8)
	for i := range 9 {
		s.add(sameHash(i))
	}
	for _, name := range []string{"v7", "a0", "j3"} {
		s.add(name)
	}
	var short []string
	for _, name := range s.list() {
		short = append(short, name[:min(len(name), 8)])
	}
	require.Equal(t, []string{
		"v7", "j3", "a0", "AaAaAaAa", "BBAaAaAa", "AaBBAaAa", "BBBBAaAa", "AaAaBBAa", "BBAaBBAa", "AaBBBBAa", "BBBBBBAa", "AaAaAaBB",
	}, short)
}

func TestTheOrderOfNamesIsThatOfTheTableWhateverWasRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newNameSet(8)
		var model [][]string // buckets
		model = make([][]string, 8)
		n := 0
		place := func(name string) int { return int(nameHash(name)) & (len(model) - 1) }
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			name := rapid.OneOf(rapid.StringN(0, 3, -1), rapid.Map(rapid.IntRange(0, 40), sameHash)).Draw(t, "name")
			i := place(name)
			at := slices.Index(model[i], name)
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				s.remove(name)
				if at >= 0 {
					model[i] = slices.Delete(model[i], at, at+1)
					n--
				}
			} else {
				s.add(name)
				if at < 0 {
					model[i] = append(model[i], name)
					n++
					for grow := len(model[i]) > 8 && len(model) < 64; grow || n > len(model)*3/4; grow = false {
						old := model
						model = make([][]string, 2*len(old))
						for _, name := range slices.Concat(old...) {
							model[place(name)] = append(model[place(name)], name)
						}
					}
				}
			}
			require.Equal(t, n, s.len())
			require.Equal(t, slices.Concat(model...), s.list())
			if i%2 == 0 {
				kept, fresh := &wire.Encoder{}, &wire.Encoder{}
				s.appendTo(kept)
				fresh.Texts(s.list())
				require.Equal(t, fresh.B, kept.B)
			}
			require.Equal(t, slices.Concat(model...), s.copy().list())
			require.Equal(t, slices.Contains(model[place(name)], name), s.has(name))
		}
	})
}

// sameHash returns the i-th of many names that have the same hash in a JVM.
func sameHash(i int) string {
	var b strings.Builder
	for range 17 {
		b.WriteString([]string{"Aa", "BB"}[i&1])
		i >>= 1
	}
	return b.String()
}
