package barrier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The request of the first party arrives twice, so its node has the number 1, though its place is 0: its neighbor is the last one.
func TestTheFirstPartyHearsOfADeathThoughItsRequestArrivedTwice(t *testing.T) {
	for _, twice := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s, dies := v.Session(), v.Session()
			first, second := zkbarrier.NewBarrier(s, proving.BarrierPath, 3), zkbarrier.NewBarrier(dies, proving.BarrierPath, 3)
			if twice {
				v.Server.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/parties-0/*").Of(s.ID()).Nth(1).Duplicate())
			}
			a := await(t.Context(), first)
			time.Sleep(3 * time.Second)
			b := await(t.Context(), second)
			time.Sleep(3 * time.Second)
			heal := v.CutOff(dies) // its process dies
			time.Sleep(time.Minute)
			synctest.Wait()
			pending := a.pending()
			heal()
			<-a.done // the dead comes back, and breaks the barrier
			<-b.done
			require.False(t, pending, "the first party is not told of the death")
			require.ErrorIs(t, a.err, zksync.ErrBroken)
		})
	}
}
