package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zktest"
)

// A registration whose answer was lost may be applied once more, so whoever of it has arrived is looked for where he
// was, after every reconnect. The second of twelve has arrived; the eleventh and the twelfth have not.
func TestWhoeverIsLookedForAfterALostAnswerIsNotTakenForAnotherParty(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		p, other := zkphaser.New(s, phaserPath), v.phasers(1)[0]
		v.gives(0, other.Register)
		lost := v.srv.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).LoseReply())
		v.gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 12) })
		require.Equal(t, 1, lost.Fired())
		v.gives(0, p.Arrive)
		v.gives(0, p.Arrive)
		require.True(t, v.srv.Disconnect(s.ID()))
		time.Sleep(time.Second)
		v.census(other, 2, 11)
	})
}
