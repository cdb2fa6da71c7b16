package zkqueue

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPauseGrowsToTheLongestOne(t *testing.T) {
	for _, most := range []time.Duration{time.Second, 5 * time.Second, math.MaxInt64 - 1, math.MaxInt64} {
		r, before := rules{first: time.Second, most: most}, time.Duration(0)
		for attempt := 1; attempt < 200; attempt++ {
			d := r.pause(attempt)
			require.GreaterOrEqual(t, d, before)
			before = d
		}
		require.Equal(t, most, before)
		require.Equal(t, most, r.pause(math.MaxInt))
	}
}
