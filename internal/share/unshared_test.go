package share

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// The bound may run out before Get returns. A session that remembered such a lease after its end would never forget it.
func TestTheSessionKeepsNoLeaseThatEndedAtItsGrant(t *testing.T) {
	s, _ := piped(t)
	brief := session.ForLock("a bound", func(s *session.Settings) { s.MaxHold = 1 })
	g := NewUnshared(session.NewAccess("zksync", s, "/permits", []session.Option{brief}), "", queue.KindLock)
	var all []weak.Pointer[lease.Lease]
	for range 2000 {
		l, err := g.Get(context.Background(), false, g.q.Obtain)
		require.NoError(t, err)
		<-l.UnwatchedContext().Done()
		all = append(all, weak.Make(l))
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		for _, l := range all {
			if l.Value() != nil {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond)
}
