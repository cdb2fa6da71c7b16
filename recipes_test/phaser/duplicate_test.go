package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zktest"
)

// The servers refuse the second of two equal requests because of what the first one has made. The caller gives up before that
// answer comes.
func TestACancelledRegistrationThatArrivedTwiceLeavesNoParty(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p := zkphaser.New(s, proving.PhaserPath)
		v.Gives(0, p.Register)
		v.Server.Intercept(zktest.On(zktest.Create, proving.PhaserPath+"/phase-0/*").Duplicate().DelayReply(time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := p.Register(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Later()
		require.Len(t, v.Server.Children(proving.PhaserPath+"/phase-0"), 1)
	})
}

func TestABulkRegistrationThatFailsHalfWayLeavesNoParty(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := zkphaser.New(v.Session(), proving.PhaserPath)
		v.Gives(0, p.Register)
		v.Server.Intercept(zktest.On(zktest.Create, proving.PhaserPath+"/phase-0/*").Nth(3).Error(zktest.CodeNoAuth))
		phase, err := p.BulkRegister(t.Context(), 4)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Equal(t, -1, phase)
		v.Quiet()
		v.Gives(1, p.RegisteredParties)
	})
}
