package queue

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyCrowdsAreRemembered(t *testing.T) {
	var c Crowds
	require.False(t, c.in("/a"))
	c.note("/a", Crowd)
	c.note("/b", Crowd-1)
	require.True(t, c.in("/a"))
	require.False(t, c.in("/b"))
	c.note("/a", 1)
	require.False(t, c.in("/a"))
	require.NotContains(t, c.sizes, "/a")
}

// A process may use a path for each order or customer, and meet a crowd at each of them once.
func TestWhatIsRememberedOfCrowdsIsBounded(t *testing.T) {
	var c Crowds
	for i := range 10 * mostCrowds {
		c.note(fmt.Sprint("/", i), Crowd)
		require.True(t, c.in(fmt.Sprint("/", i)))
		require.LessOrEqual(t, len(c.sizes), mostCrowds)
	}
}
