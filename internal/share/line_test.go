package share

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// 800 000 waiters leave in the order that is the worst for a list that closes its gaps: that would move 320 000 000 000, which takes minutes.
func TestALineIsLeftInTheSameTimeHoweverLongItIs(t *testing.T) {
	var q line
	all := make([]*waiter, 800_000)
	for i := range all {
		all[i] = new(waiter)
		q.add(all[i])
	}
	begin := time.Now()
	for _, w := range all[1:] {
		q.remove(w)
		q.remove(w) // a second time does nothing
	}
	require.Less(t, time.Since(begin), time.Minute, "less than a second of processor time, if nothing is moved")
	require.Equal(t, 1, q.len)
	require.Same(t, all[0], q.next())
	require.Nil(t, q.next())
}
