package atomic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A Store whose answer was lost, after others have changed the number: the object knows neither its version nor anything newer. In
// the next session, at a server that lags, Load must not return what was there before the Store.
func TestALoadIsNotOlderThanAStoreWhoseAnswerWasLost(t *testing.T) {
	proving.AmongMembers(t, 4, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 1, zksync.WithTimeout(10*time.Second))
		o := e.SessionAt(t, 3)
		a, b := zkatomic.NewInt64(s, "/n"), zkatomic.NewInt64(o, "/n")
		require.NoError(t, a.Store(t.Context(), 1))
		for _, n := range []int64{2, 3, 4} {
			require.NoError(t, b.Store(t.Context(), n))
		}
		time.Sleep(time.Second)
		catchUp := e.Lag(0)
		defer catchUp()
		e.Intercept(zktest.On(zktest.Multi, "/n/**").Of(s.ID()).LoseReply().Nth(1))
		require.NoError(t, a.Store(t.Context(), 5))
		for e.At(s.ID()) != 1 {
			e.Disconnect(s.ID())
			time.Sleep(200 * time.Millisecond)
		}
		// The next session begins at member 3, which drops its first request; so it goes on at member 0.
		dropped, old, other := false, s.ID(), o.ID()
		e.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
			if q.Op != zktest.Connect && q.Session != old && q.Session != other && !dropped {
				dropped, v.Fate = true, zktest.LoseRequest
			}
			return v
		})
		require.True(t, e.Expire(old))
		for s.ID() == old || s.State() != zksync.Connected {
			time.Sleep(time.Millisecond)
		}
		n, err := a.Load(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 5, n)
	})
}
