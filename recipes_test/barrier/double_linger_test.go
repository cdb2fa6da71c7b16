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

// The request of an Enter lies in the queue of a server while its session goes to another one, and is applied when the
// session has come back: when another request has made the party's node, or when the party has left.
func TestAnEnterThatLingersInAServerCountsOnce(t *testing.T) {
	for _, when := range []string{"entered", "left"} {
		t.Run(when, func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				b := zkbarrier.NewDoubleBarrier(s, doublePath, 2)
				other := zkbarrier.NewDoubleBarrier(e.SessionAt(t, 2), doublePath, 2)
				third := zkbarrier.NewDoubleBarrier(e.SessionAt(t, 2), doublePath, 2)
				pass := func(all ...*proving.Attempt) {
					for _, a := range all {
						<-a.Done
						require.NoError(t, a.Err)
					}
				}
				pass(enters(other, third)...)
				pass(leaves(other, third)...)
				held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
				enter := enters(b)[0]
				require.NoError(t, held.WaitHeld(t.Context()))
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
				if when == "left" {
					pass(append(enters(other), enter)...)
					pass(leaves(other, b)...)
				}
				// Before anybody looks again, which would remove it.
				looks := e.Intercept(zktest.On(zktest.GetChildren, "**").Of(s.ID()).Hold().Maybe())
				proving.ComesBack(t, e, s)
				held.Release()
				synctest.Wait()
				if when == "left" {
					looks.Remove()
					time.Sleep(100 * time.Millisecond)
					enter = enters(b)[0]
					time.Sleep(100 * time.Millisecond)
				}
				require.Len(t, e.Server(2).Children(doubleParties), 1)
				require.True(t, enter.Pending(), "it has passed alone: %v", enter.Err)
				pass(append(enters(other), enter)...)
				looks.Remove()
				pass(leaves(other, b)...)
				require.Empty(t, e.Server(2).Children(doubleParties))
			})
		})
	}
}
