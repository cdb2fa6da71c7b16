package session

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

type held struct{ _ int }

func (*held) Finish(error) bool { return false }

// An object that Remember refuses must find the session Closing, or it would grant a lease that Close does not know of.
func TestWhoeverIsRefusedFindsTheSessionClosing(t *testing.T) {
	s := newSession(Settings{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no servers")
	}}, []string{"zk"}, "")
	s.client = zkconn.Open(s.config())
	stop, asked := s.stop, false
	s.stop = func(cause error) {
		asked = true
		if s.mu.TryLock() { // here another goroutine can come in
			s.mu.Unlock()
			require.Equal(t, !s.Remember(new(held)), s.Closing())
		}
		stop(cause)
	}
	require.NoError(t, s.Close())
	require.True(t, asked)
	require.False(t, s.Remember(new(held)))
	require.True(t, s.Closing())
}
