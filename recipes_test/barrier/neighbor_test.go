package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zktest"
)

// The first party looks after the last one, also after one who comes between its look and the answer.
func TestADeathIsNoticedOfOneWhoCameWhileTheFirstLooked(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		victim, kill := mortal(v)
		first := zkbarrier.NewBarrier(s, proving.BarrierPath, 4)
		slow := v.Server.Intercept(zktest.On(zktest.GetChildren, proving.BarrierPath+"/**").Of(s.ID()).Nth(1).DelayReply(time.Second / 2))
		all := []*awaiting{await(context.Background(), first)}
		v.Quiet()
		all = append(all, await(context.Background(), barriers(v, 4)[0]))
		for slow.Fired() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		last := await(context.Background(), zkbarrier.NewBarrier(victim, proving.BarrierPath, 4))
		time.Sleep(time.Minute)
		require.True(t, last.pending())
		heal := kill()
		defer heal()
		time.Sleep(time.Minute)
		require.False(t, all[0].pending() || all[1].pending(), "nobody has noticed")
		brokenFor(v, all...)
	})
}
