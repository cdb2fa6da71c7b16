package zktest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAClientBeginsWhileItIsClosedIsGivenUp(t *testing.T) {
	for lost, atClose := range map[bool]string{false: "its session lives", true: "it was told that its session is lost"} {
		srv := Run(t)
		o := newOwner(srv)
		o.joined(1)
		o.joined(2)
		require.False(t, srv.hasGivenUp(1), "before it is closed")
		o.close(lost)
		o.joined(3) // the servers' answer will find nobody
		require.True(t, srv.hasGivenUp(1), atClose)
		require.Equal(t, lost, srv.hasGivenUp(2), atClose)
		require.True(t, srv.hasGivenUp(3), atClose)
		require.False(t, srv.hasGivenUp(4), "another client's")
	}
}
