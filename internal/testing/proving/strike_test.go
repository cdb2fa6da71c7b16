package proving

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A lock that is held for a minute costs its create, a watch and its delete; what keeps the session alive meanwhile
// does not count.
func TestEachRequestIsStruckOnceAndHeartbeatsAreNone(t *testing.T) {
	var struck []zktest.Op
	EveryRequest(t, "looked at", func(s *Strike) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			srv.Create("/a", nil, 0, 0)
			m := zksync.NewMutex(srv.Session(t), "/a")
			calm := s.Falls(srv, func(q *zktest.Request) zktest.Verdict {
				struck = append(struck, q.Op)
				return zktest.Verdict{}
			})
			l, err := m.LockContext(context.Background())
			require.NoError(t, err)
			time.Sleep(time.Minute)
			require.NoError(t, l.Unlock())
			calm()
		})
	})
	if !testing.Short() {
		require.Equal(t, []zktest.Op{zktest.GetData, zktest.Multi, zktest.GetData, zktest.Delete}, struck)
	}
}
