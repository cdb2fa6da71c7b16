package zkgroup

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesTellIDsAndItemsApart(t *testing.T) {
	for _, id := range []string{"a", "..", ".", "/", "%2F", "\x00\xff", "a b"} {
		got, ok := idOf(escape(id))
		require.True(t, ok)
		require.Equal(t, id, got)
	}
	_, ok := idOf("%zz")
	require.False(t, ok)
	long := string(make([]byte, 300))
	require.LessOrEqual(t, len(itemName(long)), maxName)
	require.NotEqual(t, itemName(long), itemName(long+"x"))
}
