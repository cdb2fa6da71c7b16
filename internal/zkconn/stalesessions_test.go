package zkconn

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfTooManyStaleSessionsTheOldestIsForgotten(t *testing.T) {
	c := newClient(Config{})
	for id := int64(1); id <= 3*maxStale; id++ {
		c.closeStale(Credentials{ID: id})
	}
	left := slices.Clone(c.stale)
	require.Len(t, left, maxStale)
	require.EqualValues(t, 2*maxStale+1, left[0].ID)
	c.ended(3 * maxStale)
	require.Equal(t, left[:maxStale-1], c.stale)
}
