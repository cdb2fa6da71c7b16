package queue

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/node"
)

func TestTheLimitIsNearBeforeTheNumbersRepeat(t *testing.T) {
	for seq, want := range map[int32]bool{
		0: false, 1 << 30: false, math.MaxInt32 - 65_537: false,
		math.MaxInt32 - 65_536: true, math.MaxInt32 - 1: true, math.MaxInt32: true,
		math.MinInt32: true, -1: true,
	} {
		require.Equal(t, want, nearLimit(seq), seq)
	}
}

// sequenceCounter hands out sequence numbers as a real server does: a create takes the
// number from the outstanding change of its parent if there is one, else from the
// tree, and applying it only ever raises the tree's.
type sequenceCounter struct {
	tree        int32
	outstanding []int32
	zxid        int64
}

func (c *sequenceCounter) create() (seq int32, czxid int64) {
	seq = c.tree
	if n := len(c.outstanding); n > 0 {
		seq = c.outstanding[n-1]
	}
	c.outstanding = append(c.outstanding, seq+1) // wraps around, as Java's int does
	c.zxid++
	return seq, c.zxid
}

func (c *sequenceCounter) settle() {
	for _, next := range c.outstanding {
		c.tree = max(c.tree, next)
	}
	c.outstanding = nil
}

func TestTheOrderIsThatOfCreationUpToTheLimitAndBeyond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.Int32Range(0, 12).Draw(t, "numbers left")
		server := sequenceCounter{tree: math.MaxInt32 - before, zxid: 100}
		var created []Entry
		for range rapid.IntRange(2, 25).Draw(t, "creates") {
			seq, czxid := server.create()
			e, ok := ParseEntry(entryPrefix(KindLock, node.NewUUID(), 1) + formatSequence(seq))
			require.True(t, ok)
			e.Czxid = czxid
			created = append(created, e)
			if rapid.Bool().Draw(t, "quiet") {
				server.settle()
			}
		}
		sorted := rapid.Permutation(created).Draw(t, "listing")
		sortEntries(sorted, true)
		require.Equal(t, created, sorted)
	})
}

func TestTheServersCounterIsModelledAsMeasured(t *testing.T) {
	c := sequenceCounter{tree: math.MaxInt32 - 1}
	var quiet []int32
	for range 3 {
		seq, _ := c.create()
		quiet = append(quiet, seq)
		c.settle()
	}
	require.Equal(t, []int32{math.MaxInt32 - 1, math.MaxInt32, math.MaxInt32}, quiet)
	var together []int32
	for range 3 {
		seq, _ := c.create()
		together = append(together, seq)
	}
	require.Equal(t, []int32{math.MaxInt32, math.MinInt32, math.MinInt32 + 1}, together)
	c.settle()
	seq, _ := c.create()
	require.Equal(t, int32(math.MaxInt32), seq)
}

func TestTheReadNodeOfADowngradeKeepsTheWritersPlace(t *testing.T) {
	for _, base := range []int32{10, math.MaxInt32 - 100} {
		writer := Entry{Name: "w1", Kind: KindWrite, Seq: base, Czxid: 50}
		queued := Entry{Name: "w2", Kind: KindWrite, Seq: base + 1, Czxid: 51}
		left := Entry{Name: "a-read", Kind: KindRead, Seq: base, Czxid: 99} // created last, in w1's place
		for _, byCzxid := range []bool{false, true} {
			queue := []Entry{queued, left, writer}
			sortEntries(queue, byCzxid)
			require.Equal(t, []Entry{writer, left, queued}, queue, "base %d, byCzxid %t", base, byCzxid)
		}
	}
}

func TestAnEntryOfUnknownCreationBlocksAtTheLimit(t *testing.T) {
	known := Entry{Name: "a", Kind: KindLock, Seq: math.MaxInt32, Czxid: 7}
	unknown := Entry{Name: "b", Kind: KindLock, Seq: math.MaxInt32}
	queue := []Entry{known, unknown}
	sortEntries(queue, true)
	require.Equal(t, []Entry{unknown, known}, queue)
}

func drawEntry(t *rapid.T) Entry {
	return Entry{
		Name:  rapid.StringMatching(`[a-d]{1,2}`).Draw(t, "name"),
		Kind:  rapid.SampledFrom([]Kind{KindLock, KindRead, KindWrite, KindPermit}).Draw(t, "kind"),
		Seq:   rapid.SampledFrom([]int32{0, 1, 2, math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, -1}).Draw(t, "seq"),
		Czxid: rapid.Int64Range(0, 3).Draw(t, "czxid"),
	}
}

func TestTheOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byCzxid := rapid.Bool().Draw(t, "byCzxid")
		a, b, c := drawEntry(t), drawEntry(t), drawEntry(t)
		order := func(x, y Entry) int { return compareEntries(x, y, byCzxid) }
		require.Zero(t, order(a, a))
		require.Equal(t, order(a, b), -order(b, a))
		if order(a, b) <= 0 && order(b, c) <= 0 {
			require.LessOrEqual(t, order(a, c), 0)
		}
		if a.Name != b.Name {
			require.NotZero(t, order(a, b))
		}
	})
}

func TestSortingDoesNotDependOnTheOrderOfTheListing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byCzxid := rapid.Bool().Draw(t, "byCzxid")
		queue := rapid.SliceOfNDistinct(rapid.Custom(drawEntry), 1, 12, func(e Entry) string { return e.Name }).Draw(t, "queue")
		shuffled := rapid.Permutation(queue).Draw(t, "shuffled")
		sortEntries(queue, byCzxid)
		sortEntries(shuffled, byCzxid)
		require.Equal(t, queue, shuffled)
	})
}

func TestTheEntriesAheadAreThoseBeforeOnesOwn(t *testing.T) {
	queue := []Entry{{Name: "a", UUID: "1"}, {Name: "b", UUID: "2"}, {Name: "c", UUID: "3"}}
	for i, own := range queue {
		ahead, self, found := entriesAhead(queue, own.UUID)
		require.True(t, found)
		require.Equal(t, own, self)
		require.Equal(t, queue[:i], ahead)
	}
	ahead, _, _ := entriesAhead(queue, "2")
	_ = append(ahead, Entry{Name: "overwrites"})
	require.Equal(t, "b", queue[1].Name)

	_, _, found := entriesAhead(queue, "4")
	require.False(t, found)
	_, _, found = entriesAhead(nil, "1")
	require.False(t, found)
}

func BenchmarkAListingOf5000(b *testing.B) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = entryPrefix(KindLock, node.NewUUID(), 1) + formatSequence(int32(i))
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	b.ReportAllocs()
	for b.Loop() {
		queue := make([]Entry, 0, len(names))
		for _, name := range names {
			if e, ok := ParseEntry(name); ok {
				queue = append(queue, e)
			}
		}
		sortEntries(queue, false)
	}
}

func TestAListingInServerOrderIsLeftInPlace(t *testing.T) {
	queue := make([]Entry, 100)
	for i := range queue {
		queue[i] = Entry{Name: fmt.Sprint(100 - i), Kind: KindLock, Seq: int32(i)}
	}
	want := slices.Clone(queue)
	sortEntries(queue, false)
	require.Equal(t, want, queue)
	require.True(t, slices.IsSortedFunc(queue, func(a, b Entry) int { return cmp.Compare(a.Seq, b.Seq) }))
}
