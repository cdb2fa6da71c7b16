package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryScenarioRunsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			srv, addr, _ := serve(t)
			n := min(s.Clients[0], 12)
			rows, err := runOn(t, context.Background(), addr, 15*time.Millisecond, s.With([]int{n}))
			require.NoError(t, err)
			for _, r := range rows {
				t.Logf("%-14s %2d %-9s %9.0f/s %8.1f us %6.2f requests %6.0f bytes %v", r.Scenario, r.Clients, r.Peer, r.OpsPerS, r.P50, *r.RequestsPerOp, r.BytesInPerOp, r.Deep)
			}
			left, _ := srv.Children("/")
			require.Equal(t, []string{"zookeeper"}, left)
			require.Empty(t, srv.Sessions())
		})
	}
}
