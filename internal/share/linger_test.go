package share

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// A wait for a condition takes the ticket away, and a refusal gives it back. The time of lingering before does not run then.
func TestALockThatIsHeldAgainAfterARefusedWaitStopsLingeringInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		linger := session.ForLock("a linger", func(s *session.Settings) { s.Linger = time.Minute })
		s, srv := piped(t)
		c := NewCohort(session.NewAccess("zksync", s, "/locks/a", []session.Option{linger}), queue.KindLock)
		l, err := c.Acquire(t.Context(), false)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		l, err = c.Acquire(t.Context(), false) // while it lingers
		require.NoError(t, err)
		_, kept, err := monitor{c}.releaseForWait(context.Background(), l, queue.Replacement{Dir: "/no", Node: "not a path"})
		require.Error(t, err)
		require.NotNil(t, kept)
		require.NoError(t, kept.Unlock())
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		require.Len(t, srv.Ephemerals()[s.ID()], 1)
		time.Sleep(time.Second)
		require.Empty(t, srv.Ephemerals()[s.ID()], "it lingers for ever")
	})
}
