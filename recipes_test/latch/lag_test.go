package latch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zktest"
)

func stillToCome(t *testing.T, l *zklatch.Latch, want int) {
	t.Helper()
	n, err := l.Count(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, n)
}

// The server may catch up at once, or before it is asked for the watch of the node that says that the latch is open.
func TestAWaitAtALatchIsNotMisledByALaggingServerInItsNextSession(t *testing.T) {
	for _, between := range []bool{false, true} {
		t.Run(fmt.Sprintf("catches up between two reads: %t", between), func(t *testing.T) {
			proving.AmongMembers(t, 4, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				other := zklatch.New(e.SessionAt(t, 3), proving.LatchPath, 1)
				s := e.SessionAt(t, 1)
				l := zklatch.New(s, proving.LatchPath, 1)
				catchUp := e.Lag(0)
				stillToCome(t, other, 1) // makes the nodes
				wait := proving.Waits(t.Context(), l.Wait)
				synctest.Wait()
				require.True(t, wait.Pending())
				look := zktest.On(zktest.SetWatches, proving.LatchPath+"/*")
				if between {
					look.Hold()
				}
				held := e.Intercept(look)
				proving.RenewAtLagging(t, e, s)
				catchUp()
				time.Sleep(100 * time.Millisecond)
				held.Remove()
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				require.True(t, wait.Pending(), "the latch is closed: %v", wait.Err)
				require.NoError(t, other.CountDown(t.Context()))
				<-wait.Done
				require.NoError(t, wait.Err)
			})
		})
	}
}
