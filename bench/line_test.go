package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALineChangesOnATerminalOnly(t *testing.T) {
	run := []Progress{
		{Scenario: of(t, Contended, 2), Clients: 2, Peer: "a", Rounds: 3, Total: 2},
		{Scenario: of(t, Contended, 2), Clients: 2, Peer: "b", Round: 1, Rounds: 3, Total: 2, Left: 90 * time.Second},
		{Scenario: of(t, Local, 64), Clients: 64, Peer: "a", Round: 3, Rounds: 3, Done: 1, Total: 2},
	}
	for live, want := range map[bool]string{
		false: "[1/2] contended, 2 clients\n[2/2] local, 64 clients\n",
		true: "\r\x1b[K[1/2] contended, 2 clients: warm-up, a\r\x1b[K[1/2] contended, 2 clients: round 1 of 3, b; about 1m30s left" +
			"\r\x1b[K[2/2] local, 64 clients: round 3 of 3, a\r\x1b[K",
	} {
		var shown strings.Builder
		l := NewLine(&shown)
		require.False(t, l.live)
		l.live = live
		for _, p := range run {
			l.Show(p)
		}
		l.Clear()
		require.Equal(t, want, shown.String())
	}
}
