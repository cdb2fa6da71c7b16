package barrier_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The number of a party's node is greater than its place if a request before it arrived twice. The second of three parties comes
// back in its session after more than 32 generations, and has its place all the same.
func TestAPartyThatComesBackLateHasItsPlaceThoughRequestsArrivedTwice(t *testing.T) {
	for _, doubled := range []int{0, 2, 1} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var ss []*zksync.Session
			var bs []*zkbarrier.Barrier
			for i := range 4 {
				ss = append(ss, v.Session(zksync.WithTimeout(40*time.Second)))
				bs = append(bs, zkbarrier.NewBarrier(ss[i], proving.BarrierPath, 3))
				if i < doubled {
					v.Server.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/parties-0/*").Of(ss[i].ID()).Nth(1).Duplicate())
				}
			}
			a := await(t.Context(), bs[0])
			time.Sleep(100 * time.Millisecond)
			late := await(t.Context(), bs[1])
			time.Sleep(100 * time.Millisecond)
			heal := v.CutOff(ss[1])
			c := await(t.Context(), bs[2])
			<-a.done
			<-c.done
			require.Equal(t, []int{2, 0}, []int{a.index, c.index})
			for range 40 {
				for _, x := range awaitAll(t.Context(), bs[0], bs[2], bs[3]) {
					<-x.done
					require.NoError(t, x.err)
				}
			}
			heal()
			time.Sleep(5 * time.Second)
			if late.pending() {
				require.NoError(t, bs[0].Reset(t.Context()))
				<-late.done
				t.Fatalf("%d doubled: it was counted, and waits again: %v", doubled, late.err)
			}
			require.NoError(t, late.err)
			require.Equal(t, 1, late.index, "%d doubled", doubled)
		})
	}
}
