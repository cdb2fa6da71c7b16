package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// inFlight lets two clients send requests that are all under way together, and returns when they are committed.
func inFlight(t *testing.T, do func(t *testing.T, s *Server, a, b *rawClient)) {
	inBubble(t, Config{CommitLatency: 10 * time.Millisecond}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, a.create("/e", nil, wire.FlagEphemeral).code)
		do(t, s, a, b)
		require.Equal(t, wire.CodeOK, b.do(wire.OpSync, pathBody("/")).code)
		time.Sleep(time.Second)
		requireNobodyIsUnderWay(t, s)
	})
}

func requireNobodyIsUnderWay(t *testing.T, s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.True(t, s.out.Idle())
}

func TestASessionTakesWhatItHasUnderWayWithIt(t *testing.T) {
	inFlight(t, func(t *testing.T, s *Server, a, b *rawClient) {
		a.send(wire.OpCreate, createBody("/f", nil, wire.OpenACL(), wire.FlagEphemeral))
		a.send(wire.OpClose, nil)
		synctest.Wait()
		require.Equal(t, wire.CodeOK, b.create("/f", nil, 0).code, "it is as good as gone")
		for _, path := range []string{"/e", "/f"} {
			n, ok := s.Node(path)
			require.Equal(t, path == "/f", ok, path)
			require.Zero(t, n.Stat.EphemeralOwner)
		}
	})
}

func TestASessionLeavesWhatHasTakenThePlaceOfItsNode(t *testing.T) {
	inFlight(t, func(t *testing.T, s *Server, a, b *rawClient) {
		a.send(wire.OpDelete, versionBody("/e", -1))
		synctest.Wait()
		b.send(wire.OpCreate, createBody("/e", nil, wire.OpenACL(), 0))
		synctest.Wait()
		a.send(wire.OpClose, nil)
		require.Equal(t, wire.CodeOK, b.next().code)
		time.Sleep(time.Second)
		_, ok := s.Node("/e")
		require.True(t, ok)
	})
}

func TestASessionDoesNotTakeWhatItHasFailedToMake(t *testing.T) {
	inFlight(t, func(t *testing.T, s *Server, a, b *rawClient) {
		a.send(wire.OpMulti, multiBody(
			part(wire.OpDelete, versionBody("/e", -1)), part(wire.OpCreate, createBody("/f", nil, wire.OpenACL(), wire.FlagEphemeral)),
			part(wire.OpCheck, versionBody("/no", 0)),
		))
		synctest.Wait()
		b.send(wire.OpCreate, createBody("/f", nil, wire.OpenACL(), 0))
		synctest.Wait()
		a.send(wire.OpClose, nil)
		require.Equal(t, wire.CodeOK, b.next().code)
		time.Sleep(time.Second)
		_, ok := s.Node("/f")
		require.True(t, ok)
		_, ok = s.Node("/e")
		require.False(t, ok, "the multi has failed: its delete has not happened either, but the session's end has")
	})
}
