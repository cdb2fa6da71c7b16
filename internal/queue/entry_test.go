package queue

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/node"
)

const (
	testUUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
	testHex  = "0f8fad5bd9cb469fa16570867728950e"
)

func TestNamesOfContendersAreRecognised(t *testing.T) {
	for name, want := range map[string]Entry{
		"_c_" + testUUID + "-lock-0000000007":        {UUID: testUUID, Kind: KindLock, Weight: 1, Seq: 7},
		"_c_" + testUUID + "-lock-2147483647":        {UUID: testUUID, Kind: KindLock, Weight: 1, Seq: math.MaxInt32},
		"_c_" + testUUID + "-lock--2147483648":       {UUID: testUUID, Kind: KindLock, Weight: 1, Seq: math.MinInt32},
		"_c_" + testUUID + "-lock--000000005":        {UUID: testUUID, Kind: KindLock, Weight: 1, Seq: -5},
		"_c_" + testUUID + "-__READ__0000000000":     {UUID: testUUID, Kind: KindRead, Weight: 1, Seq: 0},
		"_c_" + testUUID + "-__WRIT__-2147483647":    {UUID: testUUID, Kind: KindWrite, Weight: 1, Seq: -2147483647},
		"_c_" + testUUID + "-permit-1-0000000003":    {UUID: testUUID, Kind: KindPermit, Weight: 1, Seq: 3},
		"_c_" + testUUID + "-permit-250--2147483648": {UUID: testUUID, Kind: KindPermit, Weight: 250, Seq: math.MinInt32},
		"_c_" + testHex + "-lock-0000000012":         {UUID: testHex, Kind: KindLock, Weight: 1, Seq: 12},
		"_c_" + testHex + "-permit-2-0000000012":     {UUID: testHex, Kind: KindPermit, Weight: 2, Seq: 12},
		testHex + "__lock__0000000001":               {UUID: testHex, Kind: KindWrite, Weight: 1, Seq: 1},
		testHex + "__rlock__0000000001":              {UUID: testHex, Kind: KindRead, Weight: 1, Seq: 1},
		testHex + "__rlock__-2147483648":             {UUID: testHex, Kind: KindRead, Weight: 1, Seq: math.MinInt32},
		testHex + "-lock-0000000001":                 {UUID: testHex, Kind: KindLock, Weight: 1, Seq: 1},
		"_c_" + testUUID + "-permit-9223372036854775807-0000000000": {
			UUID: testUUID, Kind: KindPermit, Weight: math.MaxInt64},
		"_c_" + strings.ToUpper(testUUID) + "-lock-0000000007": {
			UUID: strings.ToUpper(testUUID), Kind: KindLock, Weight: 1, Seq: 7},
	} {
		want.Name = name
		got, ok := ParseEntry(name)
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
		e, ok := ParseEntry(name)
		require.False(t, ok, "%q", name)
		require.Equal(t, Entry{}, e)
	}
}

func TestAPrefixWithANumberFromTheServerIsParsedBack(t *testing.T) {
	kinds := []Kind{KindLock, KindRead, KindWrite, KindPermit}
	rapid.Check(t, func(t *rapid.T) {
		want := Entry{UUID: node.NewUUID(), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Weight: 1, Seq: rapid.Int32().Draw(t, "seq")}
		if want.Kind == KindPermit {
			want.Weight = rapid.Int64Range(1, math.MaxInt64).Draw(t, "weight")
		}
		want.Name = entryPrefix(want.Kind, want.UUID, want.Weight) + fmt.Sprintf("%010d", want.Seq)
		got, ok := ParseEntry(want.Name)
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
		u := node.NewUUID()
		require.Regexp(t, form, u)
		require.False(t, seen[u])
		seen[u] = true
	}
}

func TestOnlyLocksAndWritersAreExclusive(t *testing.T) {
	exclusive := map[Kind]bool{KindLock: true, KindWrite: true, KindRead: false, KindPermit: false}
	for kind, want := range exclusive {
		require.Equal(t, want, Entry{Kind: kind}.exclusive(), kind)
	}
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
		n, ok := ParseSequence(text)
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
		e, ok := ParseEntry(name)
		if !ok {
			require.Equal(t, Entry{}, e)
			return
		}
		require.Equal(t, name, e.Name)
		require.Regexp(t, marks, name)
		require.True(t, strings.HasSuffix(name, fmt.Sprintf("%010d", e.Seq)))
		require.Contains(t, name, e.UUID)
		require.Positive(t, e.Weight)
		if e.Kind != KindPermit {
			require.EqualValues(t, 1, e.Weight)
		}
		if len(e.UUID) == uuidLen {
			require.Equal(t, name, entryPrefix(e.Kind, e.UUID, e.Weight)+formatSequence(e.Seq))
		}
	})
}
