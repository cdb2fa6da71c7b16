package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatesHaveNamesAndTheZeroValueIsNone(t *testing.T) {
	names := map[State]string{
		Connected: "connected", Suspended: "suspended", Lost: "lost", Closed: "closed",
		0: "State(0)", 5: "State(5)", -1: "State(-1)",
	}
	require.Len(t, names, 7)
	for state, name := range names {
		require.Equal(t, name, state.String())
	}
}
