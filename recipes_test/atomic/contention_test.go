package atomic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
)

// Of n processes that send at the same time the servers refuse n-1. So they queue, and an Add costs about the same however
// many there are.
func TestTheRequestsOfContendedAddsDoNotGrowWithTheProcesses(t *testing.T) {
	for _, n := range []int{2, 8, 32} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			xs := numbers(v, n)
			for _, x := range xs { // the first use
				_, err := x.Add(t.Context(), 0)
				require.NoError(t, err)
			}
			const each = 25
			requests := v.Counted(func() { require.Len(t, adds(t, xs, each), n*each) })
			per := float64(requests) / float64(n*each)
			t.Logf("%d processes: %.2f requests for each Add", n, per)
			require.Less(t, per, 7.0)
		})
	}
}
