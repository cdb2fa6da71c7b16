package ensemble

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
)

func TestReservedPortsAreDifferentAndHeldUntilReleased(t *testing.T) {
	r, err := reservePorts(9)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range r.numbers {
		require.False(t, seen[port])
		seen[port] = true
		_, err := net.Listen("tcp", loopback.Addr(port))
		require.Error(t, err)
	}
	require.Len(t, seen, 9)

	r.release()
	l, err := net.Listen("tcp", loopback.Addr(r.numbers[0]))
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// takePort is a source of ports of which, the first time, one is somebody else's.
func takePort(t *testing.T, index int) (source func(int) (*reservation, error), calls *int) {
	calls = new(int)
	return func(n int) (*reservation, error) {
		*calls++
		r, err := reservePorts(n)
		if err != nil || *calls > 1 {
			return r, err
		}
		// The reservation's own listener stays open and plays the other process.
		thief := r.listeners[index]
		r.listeners = append(r.listeners[:index:index], r.listeners[index+1:]...)
		t.Cleanup(func() { thief.Close() })
		return r, nil
	}, calls
}

func TestAnEnsembleMovesToOtherPortsWhenOneOfItsOwnIsTaken(t *testing.T) {
	for name, c := range map[string]struct{ servers, port int }{
		"client port of a standalone server": {1, 0},
		"client port of three":               {3, portsPerServer},
		"election port of three":             {3, portsPerServer + 2},
	} {
		t.Run(name, func(t *testing.T) {
			Require(t)
			source, calls := takePort(t, c.port)
			e, err := start(t.Context(), Config{Servers: c.servers}, source)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			require.GreaterOrEqual(t, *calls, 2) // others may take ports, too
			_, err = e.Leader(t.Context())
			require.NoError(t, err)
		})
	}
}

func TestARestartedServerWaitsUntilItsPortIsFreeAgain(t *testing.T) {
	e := ForTest(t, 1)
	s := e.servers[0]
	require.NoError(t, s.Kill())
	thief, err := net.Listen("tcp", s.addr)
	require.NoError(t, err)
	started := make(chan error, 1)
	go func() { started <- s.Start(context.WithoutCancel(t.Context())) }()
	for !strings.Contains(s.Log(100), "BindException") {
		require.NoError(t, pause(t.Context()))
		require.Empty(t, started, "the start has ended, and the port was never free")
	}
	require.NoError(t, thief.Close())
	require.NoError(t, <-started)
	mode, err := s.Mode(t.Context())
	require.NoError(t, err)
	require.Equal(t, ModeStandalone, mode)
}
