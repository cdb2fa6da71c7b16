package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Heartbeats overtake what is held. A rule may hold them, too: then they are behind what was held before.
func TestHeldRequestsAreReleasedInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := map[int32]chan struct{}{1: make(chan struct{}), 2: make(chan struct{}), 3: make(chan struct{})}
		s := newServer(t, Config{Intercept: func(q *Request) Verdict {
			return Verdict{Hold: q.Op != wire.OpConnect, Release: release[q.Xid]}
		}})
		w := join(t, s, 10*time.Second)
		w.send(wire.OpExists, watchBody("/", false))
		w.send(wire.OpSync, pathBody("/"))
		w.send(wire.OpSync, pathBody("/"))
		synctest.Wait()
		close(release[2])
		close(release[1])
		require.Equal(t, int32(1), w.next().xid)
		require.Equal(t, int32(2), w.next().xid)
		synctest.Wait()
		require.Contains(t, ask(t, s, "cons"), "queued=1,", "the third is still held")
		close(release[3])
		require.Equal(t, int32(3), w.next().xid)
	})
}
