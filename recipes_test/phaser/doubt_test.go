package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zktest"
)

// A registration whose answer was lost may be applied once more, so whoever of it has arrived is looked for where he
// was, after every reconnect. The second of twelve has arrived; the eleventh and the twelfth have not.
func TestWhoeverIsLookedForAfterALostAnswerIsNotTakenForAnotherParty(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p, other := zkphaser.New(s, proving.PhaserPath), phasers(v, 1)[0]
		v.Gives(0, other.Register)
		lost := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).LoseReply())
		v.Gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 12) })
		require.Equal(t, 1, lost.Fired())
		v.Gives(0, p.Arrive)
		v.Gives(0, p.Arrive)
		require.True(t, v.Server.Disconnect(s.ID()))
		time.Sleep(time.Second)
		census(v, other, 2, 11)
	})
}
