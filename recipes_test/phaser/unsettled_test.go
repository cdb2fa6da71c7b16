package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// What a server says when its answer settles nothing, or is wrong.
const (
	noNode       = -101
	sessionMoved = -118
)

// The party has arrived, and then it cannot be found out whether it was the last.
func TestAnErrorAfterAnArrivalComesWithItsPhase(t *testing.T) {
	for name, c := range map[string]struct {
		call       func(*zkphaser.Phaser) func(context.Context) (int, error)
		registered int
	}{
		"arrive": {func(p *zkphaser.Phaser) func(context.Context) (int, error) { return p.Arrive }, 2},
		"leave":  {func(p *zkphaser.Phaser) func(context.Context) (int, error) { return p.ArriveAndDeregister }, 1},
		"await":  {func(p *zkphaser.Phaser) func(context.Context) (int, error) { return p.ArriveAndAwaitAdvance }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ps := phasers(v, 2)
				v.Gives(0, ps[0].Register)
				v.Gives(0, ps[1].Register)
				v.Server.Intercept(zktest.On(zktest.Delete, proving.PhaserPath+"/phase-0/*").LoseReply().Times(1))
				refused := v.Server.Intercept(zktest.On(zktest.Sync, proving.PhaserPath).Nth(2).Times(100).Error(zktest.CodeNoAuth))
				n, err := c.call(ps[0])(context.Background())
				require.ErrorIs(t, err, zk.ErrNoAuth)
				require.Equal(t, 0, n, "it has arrived")
				refused.Remove()
				v.Gives(1, ps[1].UnarrivedParties)
				v.Gives(c.registered, ps[1].RegisteredParties)
			})
		})
	}
}

// It had arrived by a call whose answer was lost, and the requests that remove its node get no answer that settles anything.
// They are repeated when the call has ended, too.
func TestAPartyThatLeavesAfterAnArrivalInDoubtIsRemovedWhateverTheServersAnswer(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 2)
		v.Gives(0, ps[0].Register)
		v.Gives(0, ps[1].Register)
		v.Server.Intercept(zktest.On(zktest.Delete, proving.PhaserPath+"/phase-0/*").LoseReply().Times(1))
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		n, err := ps[0].Arrive(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, -1, n)
		moved := v.Server.Intercept(zktest.On(zktest.Delete, proving.PhaserPath+"/phase-1/*").Error(sessionMoved))
		ctx, start := proving.Soon(t)
		n, err = ps[0].ArriveAndDeregister(ctx)
		require.NoError(t, err)
		require.Equal(t, 0, n, "it has arrived")
		require.Equal(t, proving.Deadline, time.Since(start))
		census(v, ps[1], 1, 1)
		moved.Remove()
		time.Sleep(time.Second)
		census(v, ps[1], 0, 1)
		_, err = ps[0].Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse, "it is registered no more")
	})
}
