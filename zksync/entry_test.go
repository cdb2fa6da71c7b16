package zksync

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-menagerie/menagerie/internal/enter"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	testUUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
	testHex  = "0f8fad5bd9cb469fa16570867728950e"
)

func TestNamesOfContendersAreRecognised(t *testing.T) {
	for name, want := range map[string]entry{
		"_c_" + testUUID + "-lock-0000000007":        {uuid: testUUID, kind: KindLock, weight: 1, seq: 7},
		"_c_" + testUUID + "-lock-2147483647":        {uuid: testUUID, kind: KindLock, weight: 1, seq: math.MaxInt32},
		"_c_" + testUUID + "-lock--2147483648":       {uuid: testUUID, kind: KindLock, weight: 1, seq: math.MinInt32},
		"_c_" + testUUID + "-lock--000000005":        {uuid: testUUID, kind: KindLock, weight: 1, seq: -5},
		"_c_" + testUUID + "-__READ__0000000000":     {uuid: testUUID, kind: KindRead, weight: 1, seq: 0},
		"_c_" + testUUID + "-__WRIT__-2147483647":    {uuid: testUUID, kind: KindWrite, weight: 1, seq: -2147483647},
		"_c_" + testUUID + "-permit-1-0000000003":    {uuid: testUUID, kind: KindPermit, weight: 1, seq: 3},
		"_c_" + testUUID + "-permit-250--2147483648": {uuid: testUUID, kind: KindPermit, weight: 250, seq: math.MinInt32},
		"_c_" + testHex + "-lock-0000000012":         {uuid: testHex, kind: KindLock, weight: 1, seq: 12},
		"_c_" + testHex + "-permit-2-0000000012":     {uuid: testHex, kind: KindPermit, weight: 2, seq: 12},
		testHex + "__lock__0000000001":               {uuid: testHex, kind: KindWrite, weight: 1, seq: 1},
		testHex + "__rlock__0000000001":              {uuid: testHex, kind: KindRead, weight: 1, seq: 1},
		testHex + "__rlock__-2147483648":             {uuid: testHex, kind: KindRead, weight: 1, seq: math.MinInt32},
		testHex + "-lock-0000000001":                 {uuid: testHex, kind: KindLock, weight: 1, seq: 1},
		"_c_" + testUUID + "-permit-9223372036854775807-0000000000": {
			uuid: testUUID, kind: KindPermit, weight: math.MaxInt64},
		"_c_" + strings.ToUpper(testUUID) + "-lock-0000000007": {
			uuid: strings.ToUpper(testUUID), kind: KindLock, weight: 1, seq: 7},
	} {
		want.name = name
		got, ok := parseEntry(name)
		require.True(t, ok, name)
		require.Equal(t, want, got)
	}
}

func TestOtherChildrenAreNoContenders(t *testing.T) {
	for _, name := range []string{
		"", "README", "_c_", "lock-x", "lock-0000000001", "lock", "-lock-0000000001", "0000000001",
		"_c_x-lock-0000000001",
		"_c_" + testUUID, "_c_" + testUUID + "-", "_c_" + testUUID + "-lock-", "_c_" + testUUID + "-lock",
		"_c_" + testUUID + "-latch-0000000001",
		"_c_" + testUUID + "lock-0000000001",
		"_c_" + testUUID + "-lock-000000001",   // nine digits
		"_c_" + testUUID + "-lock-00000000001", // eleven
		"_c_" + testUUID + "-lock-2147483648",
		"_c_" + testUUID + "-lock--2147483649",
		"_c_" + testUUID + "-lock--0000000005", // Java pads the sign within the ten
		"_c_" + testUUID + "-lock--000000000",
		"_c_" + testUUID + "-lock-+000000005",
		"_c_" + testUUID + "-lock-00000000x1",
		"_c_" + testUUID + "-lock-0000000001 ",
		"_c_" + testUUID + "-lock-٠٠٠٠٠٠٠٠٠١",
		"_c_" + testUUID + "-permit-0000000001",
		"_c_" + testUUID + "-permit-0-0000000001",
		"_c_" + testUUID + "-permit-01-0000000001",
		"_c_" + testUUID + "-permit--1-0000000001",
		"_c_" + testUUID + "-permit-+1-0000000001",
		"_c_" + testUUID + "-permit--0000000001",
		"_c_" + testUUID + "-permit-9223372036854775808-0000000001",
		"_c_" + testUUID + "-permit-1-",
		"_c_" + testUUID + "__lock__0000000001",
		"_c_" + testHex + "__rlock__0000000001",
		testUUID + "-lock-0000000001",
		testUUID + "__lock__0000000001",
		testHex + "-__READ__0000000001",
		testHex + "-permit-1-0000000001",
		testHex + "0-lock-0000000001",
		"_c_" + testUUID[:35] + "g-lock-0000000001",
		"_c_" + strings.Replace(testUUID, "-", "0", 1) + "-lock-0000000001",
		"_c_" + testUUID[:35] + "--lock-0000000001",
		"_C_" + testUUID + "-lock-0000000001",
		strings.Repeat("_c_", 1000),
	} {
		e, ok := parseEntry(name)
		require.False(t, ok, "%q", name)
		require.Equal(t, entry{}, e)
	}
}

func TestAPrefixWithANumberFromTheServerIsParsedBack(t *testing.T) {
	kinds := []Kind{KindLock, KindRead, KindWrite, KindPermit}
	rapid.Check(t, func(t *rapid.T) {
		want := entry{uuid: enter.NewUUID(), kind: rapid.SampledFrom(kinds).Draw(t, "kind"), weight: 1, seq: rapid.Int32().Draw(t, "seq")}
		if want.kind == KindPermit {
			want.weight = rapid.Int64Range(1, math.MaxInt64).Draw(t, "weight")
		}
		want.name = entryPrefix(want.kind, want.uuid, want.weight) + fmt.Sprintf("%010d", want.seq)
		got, ok := parseEntry(want.name)
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

func TestPrefixesAreThoseOfTheOtherLibraries(t *testing.T) {
	require.Equal(t, "_c_"+testUUID+"-lock-", entryPrefix(KindLock, testUUID, 1))
	require.Equal(t, "_c_"+testUUID+"-__READ__", entryPrefix(KindRead, testUUID, 1))
	require.Equal(t, "_c_"+testUUID+"-__WRIT__", entryPrefix(KindWrite, testUUID, 1))
	require.Equal(t, "_c_"+testUUID+"-permit-3-", entryPrefix(KindPermit, testUUID, 3))
	require.Panics(t, func() { entryPrefix("latch", testUUID, 1) })
}

func TestUUIDsAreRandomVersionFourAndNeverRepeat(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 10_000 {
		u := enter.NewUUID()
		require.Regexp(t, form, u)
		require.False(t, seen[u])
		seen[u] = true
	}
}

func TestOnlyLocksAndWritersAreExclusive(t *testing.T) {
	exclusive := map[Kind]bool{KindLock: true, KindWrite: true, KindRead: false, KindPermit: false}
	for kind, want := range exclusive {
		require.Equal(t, want, entry{kind: kind}.exclusive(), kind)
	}
}

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
		var created []entry
		for range rapid.IntRange(2, 25).Draw(t, "creates") {
			seq, czxid := server.create()
			e, ok := parseEntry(entryPrefix(KindLock, enter.NewUUID(), 1) + formatSequence(seq))
			require.True(t, ok)
			e.czxid = czxid
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
		writer := entry{name: "w1", kind: KindWrite, seq: base, czxid: 50}
		queued := entry{name: "w2", kind: KindWrite, seq: base + 1, czxid: 51}
		left := entry{name: "a-read", kind: KindRead, seq: base, czxid: 99} // created last, in w1's place
		for _, byCzxid := range []bool{false, true} {
			queue := []entry{queued, left, writer}
			sortEntries(queue, byCzxid)
			require.Equal(t, []entry{writer, left, queued}, queue, "base %d, byCzxid %t", base, byCzxid)
		}
	}
}

func TestAnEntryOfUnknownCreationBlocksAtTheLimit(t *testing.T) {
	known := entry{name: "a", kind: KindLock, seq: math.MaxInt32, czxid: 7}
	unknown := entry{name: "b", kind: KindLock, seq: math.MaxInt32}
	queue := []entry{known, unknown}
	sortEntries(queue, true)
	require.Equal(t, []entry{unknown, known}, queue)
}

func drawEntry(t *rapid.T) entry {
	return entry{
		name:  rapid.StringMatching(`[a-d]{1,2}`).Draw(t, "name"),
		kind:  rapid.SampledFrom([]Kind{KindLock, KindRead, KindWrite, KindPermit}).Draw(t, "kind"),
		seq:   rapid.SampledFrom([]int32{0, 1, 2, math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, -1}).Draw(t, "seq"),
		czxid: rapid.Int64Range(0, 3).Draw(t, "czxid"),
	}
}

func TestTheOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byCzxid := rapid.Bool().Draw(t, "byCzxid")
		a, b, c := drawEntry(t), drawEntry(t), drawEntry(t)
		order := func(x, y entry) int { return compareEntries(x, y, byCzxid) }
		require.Zero(t, order(a, a))
		require.Equal(t, order(a, b), -order(b, a))
		if order(a, b) <= 0 && order(b, c) <= 0 {
			require.LessOrEqual(t, order(a, c), 0)
		}
		if a.name != b.name {
			require.NotZero(t, order(a, b))
		}
	})
}

func TestSortingDoesNotDependOnTheOrderOfTheListing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byCzxid := rapid.Bool().Draw(t, "byCzxid")
		queue := rapid.SliceOfNDistinct(rapid.Custom(drawEntry), 1, 12, func(e entry) string { return e.name }).Draw(t, "queue")
		shuffled := rapid.Permutation(queue).Draw(t, "shuffled")
		sortEntries(queue, byCzxid)
		sortEntries(shuffled, byCzxid)
		require.Equal(t, queue, shuffled)
	})
}

func TestTheEntriesAheadAreThoseBeforeOnesOwn(t *testing.T) {
	queue := []entry{{name: "a", uuid: "1"}, {name: "b", uuid: "2"}, {name: "c", uuid: "3"}}
	for i, own := range queue {
		ahead, self, found := entriesAhead(queue, own.uuid)
		require.True(t, found)
		require.Equal(t, own, self)
		require.Equal(t, queue[:i], ahead)
	}
	ahead, _, _ := entriesAhead(queue, "2")
	_ = append(ahead, entry{name: "overwrites"})
	require.Equal(t, "b", queue[1].name)

	_, _, found := entriesAhead(queue, "4")
	require.False(t, found)
	_, _, found = entriesAhead(nil, "1")
	require.False(t, found)
}

func TestOnlyTheServersOwnSpellingOfANumberIsASequence(t *testing.T) {
	for _, c := range []struct {
		seq  int32
		text string
	}{
		{0, "0000000000"}, {math.MaxInt32, "2147483647"}, {-1, "-000000001"}, {-999999999, "-999999999"},
		{-1000000000, "-1000000000"}, {math.MinInt32, "-2147483648"},
	} {
		require.Equal(t, c.text, formatSequence(c.seq))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[-+]?[0-9]{8,12}`),
			rapid.Map(rapid.Int32(), formatSequence),
		).Draw(t, "text")
		n, ok := parseSequence(text)
		if ok {
			require.Equal(t, text, formatSequence(n))
			return
		}
		var value int64
		_, err := fmt.Sscanf(text, "%d", &value)
		require.NoError(t, err)
		require.NotEqual(t, text, fmt.Sprintf("%010d", int32(value)))
	})
}

func FuzzParseEntry(f *testing.F) {
	for _, name := range []string{
		"README", "_c_", "lock-x", "_c_x-lock-0000000001",
		"_c_" + testUUID + "-lock-0000000001", "_c_" + testHex + "-__READ__0000000001",
		"_c_" + testUUID + "-__WRIT__-2147483648", "_c_" + testUUID + "-permit-12-0000000001",
		testHex + "__lock__0000000001", testHex + "__rlock__0000000001", testHex + "-lock--2147483648",
	} {
		f.Add(name)
	}
	marks := regexp.MustCompile(`^(?:_c_(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})` +
		`(?:-lock-|-__READ__|-__WRIT__|-permit-([1-9][0-9]*)-)|[0-9a-fA-F]{32}(?:__lock__|__rlock__|-lock-))(-[0-9]{9,10}|[0-9]{10})$`)
	f.Fuzz(func(t *testing.T, name string) {
		e, ok := parseEntry(name)
		if !ok {
			require.Equal(t, entry{}, e)
			return
		}
		require.Equal(t, name, e.name)
		require.Regexp(t, marks, name)
		require.True(t, strings.HasSuffix(name, fmt.Sprintf("%010d", e.seq)))
		require.Contains(t, name, e.uuid)
		require.Positive(t, e.weight)
		if e.kind != KindPermit {
			require.EqualValues(t, 1, e.weight)
		}
		if len(e.uuid) == uuidLen {
			require.Equal(t, name, entryPrefix(e.kind, e.uuid, e.weight)+formatSequence(e.seq))
		}
	})
}

func BenchmarkAListingOf5000(b *testing.B) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = entryPrefix(KindLock, enter.NewUUID(), 1) + formatSequence(int32(i))
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	b.ReportAllocs()
	for b.Loop() {
		queue := make([]entry, 0, len(names))
		for _, name := range names {
			if e, ok := parseEntry(name); ok {
				queue = append(queue, e)
			}
		}
		sortEntries(queue, false)
	}
}

func TestAListingInServerOrderIsLeftInPlace(t *testing.T) {
	queue := make([]entry, 100)
	for i := range queue {
		queue[i] = entry{name: fmt.Sprint(100 - i), kind: KindLock, seq: int32(i)}
	}
	want := slices.Clone(queue)
	sortEntries(queue, false)
	require.Equal(t, want, queue)
	require.True(t, slices.IsSortedFunc(queue, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) }))
}
