package zkconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A link that is cut in the middle of a heartbeat says nothing of what servers read: they have answered longer requests.
func TestASmallRequestThatIsLateLeavesTheLongestThatWasAnswered(t *testing.T) {
	var m maxBuffer
	m.answered(100 << 10)
	m.late(100)
	for range enoughCuts {
		m.closed(50 << 10)
	}
	require.NoError(t, m.refuse(50<<10))
	for range enoughCuts {
		m.late(50 << 10)
	}
	require.Error(t, m.refuse(50<<10), "this link takes too long for it")
	require.NoError(t, m.refuse(40<<10))
}

// The servers may have been set up again.
func TestARequestThatWasTooLongIsSentOnceMoreAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m maxBuffer
		for range enoughCuts {
			m.closed(50 << 10)
		}
		time.Sleep(cutsLast - time.Nanosecond)
		require.Error(t, m.refuse(50<<10))
		time.Sleep(time.Nanosecond)
		require.NoError(t, m.refuse(50<<10))
		m.closed(50 << 10)
		require.Error(t, m.refuse(50<<10), "they have not been")
	})
}
