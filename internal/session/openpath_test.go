package session

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A session may use a path for each of its jobs, for months.
func TestThePathsThatASessionHasLookedAtAreBounded(t *testing.T) {
	var looks openLooks
	require.True(t, looks.first("/a"))
	require.False(t, looks.first("/a"))
	looks.forget("/a")
	require.True(t, looks.first("/a"))
	for i := range 3 * mostOpenLooks {
		require.True(t, looks.first(fmt.Sprint("/jobs/", i)))
		require.LessOrEqual(t, len(looks.paths), mostOpenLooks)
	}
	require.False(t, looks.first(fmt.Sprint("/jobs/", 3*mostOpenLooks-1)))
}
