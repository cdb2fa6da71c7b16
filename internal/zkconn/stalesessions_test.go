package zkconn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfTooManyStaleSessionsTheOldestIsForgotten(t *testing.T) {
	var s staleSessions
	for id := int64(1); id <= 3*maxStale; id++ {
		s.add(Credentials{ID: id})
	}
	require.Len(t, s.list(), maxStale)
	require.False(t, s.has(2*maxStale))
	require.True(t, s.has(2*maxStale+1))
	s.remove(3 * maxStale)
	require.False(t, s.has(3*maxStale))
}
