package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAcceptance111NamesAreParsedFilteredAndSortedBySequence(t *testing.T) {
	const a, b, c = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222", "33333333333343338333333333333333"
	listing := []string{
		"_c_" + b + "-lock-0000000010", "README", "_c_", "lock-x", "_c_" + a + "-lock-0000000009",
		"lock-0000000001", "_c_" + c + "-lock-0000000100", "_c_" + a + "-other-0000000001",
	}
	var entries []Entry
	for _, name := range listing {
		if e, ok := ParseEntry(name); ok {
			entries = append(entries, e)
		}
	}
	sortEntries(entries, false)
	var order []int32
	for _, e := range entries {
		require.Equal(t, KindLock, e.Kind)
		order = append(order, e.Seq)
	}
	require.Equal(t, []int32{9, 10, 100}, order, "as numbers, not as text; nothing foreign")
	ahead, self, found := entriesAhead(entries, b)
	require.True(t, found)
	require.Equal(t, int32(10), self.Seq)
	require.Len(t, ahead, 1)
	_, _, found = entriesAhead(entries, "nobody")
	require.False(t, found)
}
