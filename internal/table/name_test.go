package table

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/node"
)

func TestNamesOfKeys(t *testing.T) {
	for key, name := range map[string]string{
		"": "%", "a": "a", ".": "%2E", "..": "%2E%2E", "...": "...", "a.b": "a.b", "/": "%2F", "%2F": "%252F", "%": "%25",
		"a b": "a%20b", "\x00\xff": "%00%FF", "ä": "%C3%A4", "Zz09-_~": "Zz09-_~", "user:7": "user%3A7",
	} {
		require.Equal(t, name, nameOf(key))
		got, ok := keyOf(name)
		require.True(t, ok)
		require.Equal(t, key, got)
	}
	for _, name := range []string{"%4", "%2f", "%41", "a%", "ä", "a b", "%%", ".", "..", "%zz", "%2E.", "", "%+1"} {
		_, ok := keyOf(name)
		require.False(t, ok, name)
	}
}

func TestEveryKeyHasANameOfItsOwnThatTheServersTake(t *testing.T) {
	keys := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringOfN(rapid.SampledFrom([]rune("./%25Ea")), 0, 6, -1))
	rapid.Check(t, func(t *rapid.T) {
		key := keys.Draw(t, "key")
		name := nameOf(key)
		require.Empty(t, node.PathProblem("/"+name))
		require.NotContains(t, name, "/")
		back, ok := keyOf(name)
		require.True(t, ok)
		require.Equal(t, key, back)
		if plain := strings.Trim(key, ".") != "" && len(key) > 0; plain {
			unescaped, err := url.PathUnescape(name)
			require.NoError(t, err, "it is the escape of URLs")
			require.Equal(t, key, unescaped)
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(key))
		require.Equal(t, h.Sum32()%newBuckets, numberOf(key, newBuckets))
	})
}

func FuzzKeyOf(f *testing.F) {
	for _, name := range []string{"", "%", "%2E", "%25", "a%2", "ä"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if key, ok := keyOf(name); ok {
			require.Equal(t, name, nameOf(key), "two names are one key")
		}
	})
}

func TestATransactionThatClearsFitsIntoARequest(t *testing.T) {
	long := strings.Repeat("x", maxName)
	for _, c := range []struct {
		paths []string
		want  int
	}{
		{nil, 0}, {[]string{"a"}, 1}, {[]string{long, long, long}, 3}, {[]string{long, long, long, long, long}, 4},
		{make([]string, 1300), 500}, {[]string{strings.Repeat("x", 1<<19), "a"}, 1},
	} {
		require.Equal(t, c.want, chunk(c.paths))
	}
}

func TestKeysAreSpreadOverTheBuckets(t *testing.T) {
	const n = 100_000
	for name, key := range map[string]func(i int) string{
		"numbers": strconv.Itoa,
		"padded":  func(i int) string { return fmt.Sprintf("customer-%07d", i) },
		"long":    func(i int) string { return strings.Repeat("x", 500) + strconv.Itoa(i) },
		"bytes":   func(i int) string { return string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}) },
	} {
		entries, listing := map[uint32]int{}, map[uint32]int{}
		for i := range n {
			k := key(i)
			b := numberOf(k, newBuckets)
			entries[b]++
			listing[b] += 4 + len(nameOf(k))
		}
		require.Len(t, entries, newBuckets, name)
		for b := range entries {
			require.InDelta(t, n/newBuckets, entries[b], n/newBuckets/2, name)
			require.Less(t, listing[b], 1<<20, name)
		}
	}
}
