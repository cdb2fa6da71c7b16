package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zktest"
)

// The request of an Add lingers in a server after its connection was lost, and is applied when another one
// has added the member, when the member is done, or when the Add has been taken back.
func TestAnAddThatLingersInAServerCountsOnce(t *testing.T) {
	for _, when := range []string{"added", "done", "taken back", "the round is over"} {
		t.Run(when, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				s := v.session()
				g, other := zkbarrier.NewWaitGroup(s, groupPath), v.groups(1)[0]
				require.NoError(t, other.AddContext(context.Background(), 1))
				held := v.srv.Intercept(zktest.On(zktest.Multi, "**").Session(s.ID()).Times(1).Hold())
				ctx, cancel := context.WithCancel(context.Background())
				adds := waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
				require.NoError(t, held.WaitHeld(t.Context()))
				if when == "taken back" {
					cancel()
					v.awaits(adds.done, "the call to return")
				}
				v.srv.Disconnect(s.ID())
				if when != "taken back" {
					v.passes(adds)
				}
				cancel()
				time.Sleep(100 * time.Millisecond)
				if when == "done" || when == "the round is over" {
					require.NoError(t, g.DoneContext(context.Background()))
				}
				if when == "the round is over" {
					require.NoError(t, other.DoneContext(context.Background()))
					require.NoError(t, other.AddContext(context.Background(), 1))
				}
				held.Release()
				v.later()
				if when == "added" {
					v.working(other, 2)
					require.NoError(t, g.DoneContext(context.Background()))
				}
				v.working(other, 1)
				require.NoError(t, other.DoneContext(context.Background()))
				require.NoError(t, other.WaitContext(context.Background()))
				v.later()
				v.nothingLeft(groupPath)
			})
		})
	}
}
