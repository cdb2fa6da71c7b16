package loopback

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func port(t *testing.T, l net.Listener, err error) int {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestPortsLieBelowTheRangeOfOutgoingConnections(t *testing.T) {
	for range 20 {
		l, err := listenBelow(30000)
		p := port(t, l, err)
		require.GreaterOrEqual(t, p, 15000)
		require.Less(t, p, 30000)
	}
	low := Outgoing()
	l, err := Listen()
	if p := port(t, l, err); low >= 2*unprivileged { // a machine may leave no room below it
		require.Less(t, p, low)
	}
}

func TestWhereThatRangeLeavesNoRoomTheSystemChoosesThePort(t *testing.T) {
	l, err := listenBelow(unprivileged)
	require.GreaterOrEqual(t, port(t, l, err), unprivileged)
}

func TestAPortThatIsTakenIsPassedOver(t *testing.T) {
	const limit = 2060 // from 1030 on: every tenth port is taken in the end
	for range 100 {
		l, err := listenBelow(limit)
		p := port(t, l, err)
		require.GreaterOrEqual(t, p, limit/2)
		require.Less(t, p, limit, "the system chose it")
	}
}

func TestNobodyListensAtARefusingPortNorCan(t *testing.T) {
	addr, free, err := Refusing()
	require.NoError(t, err)
	defer free()
	_, err = net.Listen("tcp", addr)
	require.Error(t, err)
	_, err = net.Dial("tcp", addr)
	require.ErrorContains(t, err, "refused")
}
