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

// An extra party has the turn, so that nobody comes to the next generation before it. But then members of this generation
// give up, and it needs others again.
func TestOthersArriveAfterAnExtraPartyThatHasTheTurnBecomesAMember(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 3, zkbarrier.Tolerant())
		leave(v, awaitAll(t.Context(), bs...)...)
		far := v.Session()
		v.Server.Delay(far.ID(), 100*time.Millisecond, 100*time.Millisecond)
		v.Server.Intercept(zktest.On(zktest.Delete, proving.BarrierPath+"/open-*").Delay(4 * time.Second))
		var members []*awaiting
		var extra *awaiting
		ctx, giveUp := context.WithCancel(t.Context())
		for i := range 4 {
			members = append(awaitAll(ctx, bs[:2]...), await(t.Context(), bs[2]))
			if i == 0 {
				time.Sleep(time.Second)
				extra = await(t.Context(), zkbarrier.NewBarrier(far, proving.BarrierPath, 3, zkbarrier.Tolerant()))
			}
			if i < 3 {
				leave(v, members...)
			}
		}
		time.Sleep(3 * time.Second)
		require.True(t, v.Exists(proving.BarrierPath+"/turn"))
		require.Len(t, v.Server.Children(proving.BarrierPath+"/parties-4"), 4)
		giveUp()
		time.Sleep(10 * time.Second)
		require.Len(t, v.Server.Children(proving.BarrierPath+"/parties-4"), 2)
		leave(v, members[2], extra, await(t.Context(), bs[0]))
	})
}
