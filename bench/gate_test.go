package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func openGate(t *testing.T) (*zktest.Server, *Crew) {
	srv, addr, _ := serve(t)
	crew, err := gate(t.Context(), Site{Slice: slice(t, srv, addr, of(t, Gate, 4)), Meter: &Meter{}})
	require.NoError(t, err)
	t.Cleanup(crew.Close)
	return srv, crew
}

func TestAllWaitBeforeTheGateIsOpened(t *testing.T) {
	t.Parallel()
	srv, crew := openGate(t)
	for range 3 {
		asked := srv.RequestsBy(zktest.Sync)
		slow := srv.Intercept(zktest.On(zktest.GetData, "/q/gate/closed").Nth(2).Delay(4 * quiet)) // slower than quiet
		require.NoError(t, crew.Before(context.Background()))
		require.Equal(t, 4, srv.Watches())
		require.Equal(t, 4*waitAsks, srv.RequestsBy(zktest.Sync)-asked+slow.Matched())
		slow.Remove()
		require.NoError(t, crew.Step(context.Background()))
		require.Zero(t, srv.Watches())
	}
}

func TestAGateThatLetsSomebodyThroughIsFound(t *testing.T) {
	t.Parallel()
	srv, crew := openGate(t)
	found := make(chan error)
	go func() {
		for { // on a slow machine it may be opened too late for one round
			if err := crew.Before(context.Background()); err != nil {
				found <- err
				return
			}
			_ = crew.Step(context.Background())
		}
	}()
	for ticks := time.NewTicker(time.Millisecond); ; {
		select {
		case err := <-found:
			require.ErrorIs(t, err, errEarly)
			return
		case <-ticks.C:
			srv.DeleteAll("/q/gate/closed")
		}
	}
}
