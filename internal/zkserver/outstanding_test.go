package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// inFlight lets two clients send requests that are all under way together, and returns when they are committed.
func inFlight(t *testing.T, do func(t *testing.T, s *Server, a, b *rawClient)) {
	inBubble(t, Config{CommitLatency: 10 * time.Millisecond}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, a.create("/e", nil, FlagEphemeral).code)
		do(t, s, a, b)
		require.Equal(t, CodeOK, b.do(OpSync, pathBody("/")).code)
		time.Sleep(time.Second)
		requireNobodyIsUnderWay(t, s)
	})
}

func requireNobodyIsUnderWay(t *testing.T, s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.out.queue)
	require.Empty(t, s.out.byPath)
	require.Empty(t, s.out.bySession)
}

func TestASessionTakesWhatItHasUnderWayWithIt(t *testing.T) {
	inFlight(t, func(t *testing.T, s *Server, a, b *rawClient) {
		a.send(OpCreate, createBody("/f", nil, OpenACL(), FlagEphemeral))
		a.send(OpClose, nil)
		synctest.Wait()
		require.Equal(t, CodeOK, b.create("/f", nil, 0).code, "it is as good as gone")
		for _, path := range []string{"/e", "/f"} {
			n, ok := s.Node(path)
			require.Equal(t, path == "/f", ok, path)
			require.Zero(t, n.Stat.EphemeralOwner)
		}
	})
}

func TestASessionLeavesWhatHasTakenThePlaceOfItsNode(t *testing.T) {
	inFlight(t, func(t *testing.T, s *Server, a, b *rawClient) {
		a.send(OpDelete, versionBody("/e", -1))
		synctest.Wait()
		b.send(OpCreate, createBody("/e", nil, OpenACL(), 0))
		synctest.Wait()
		a.send(OpClose, nil)
		require.Equal(t, CodeOK, b.next().code)
		time.Sleep(time.Second)
		_, ok := s.Node("/e")
		require.True(t, ok)
	})
}

func TestASessionDoesNotTakeWhatItHasFailedToMake(t *testing.T) {
	inFlight(t, func(t *testing.T, s *Server, a, b *rawClient) {
		a.send(OpMulti, multiBody(
			part(OpDelete, versionBody("/e", -1)), part(OpCreate, createBody("/f", nil, OpenACL(), FlagEphemeral)),
			part(OpCheck, versionBody("/no", 0)),
		))
		synctest.Wait()
		b.send(OpCreate, createBody("/f", nil, OpenACL(), 0))
		synctest.Wait()
		a.send(OpClose, nil)
		require.Equal(t, CodeOK, b.next().code)
		time.Sleep(time.Second)
		_, ok := s.Node("/f")
		require.True(t, ok)
		_, ok = s.Node("/e")
		require.False(t, ok, "the multi has failed: its delete has not happened either, but the session's end has")
	})
}
