package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPausesDoubleUpToASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Pace{Free: 2}
		var took []time.Duration
		for range 12 {
			start := time.Now()
			require.NoError(t, p.Rest(t.Context(), nil))
			took = append(took, time.Since(start)/time.Millisecond)
		}
		require.Equal(t, []time.Duration{0, 0, 5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000}, took)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Rest(ctx, nil), context.Canceled)
	})
}
