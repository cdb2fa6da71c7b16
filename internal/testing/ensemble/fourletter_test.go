package ensemble

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADialThatTimesOutFirstStillTellsThatTheContextEnded(t *testing.T) {
	s := &Server{ask: func(context.Context, string, string) (string, error) {
		return "", &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
	_, err := s.FourLetter(t.Context(), "ruok")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAServerServesOnlyOnceItsPortForTLSIsOpenToo(t *testing.T) {
	ports := []int{4001, 4002, 4003, 4004}
	for _, c := range []struct {
		tls     *TLS
		conf    string
		serving bool
	}{
		{nil, "secureClientPort=-1", true},
		{&TLS{}, "secureClientPort=-1", false},
		{&TLS{}, "secureClientPort=4", false},
		{&TLS{}, "", false},
		{&TLS{}, "secureClientPort=4004", true},
	} {
		s := newServer(1, "/data", Config{TLS: c.tls}, installation{}, nil, ports)
		s.ask = func(_ context.Context, _, word string) (string, error) {
			return map[string]string{
				"srvr": "Mode: standalone\n",
				"conf": "clientPort=4001\n" + c.conf + "\ndataDir=/data/data/version-2\n",
			}[word], nil
		}
		require.Equal(t, c.serving, s.serves(t.Context()), "TLS %v, %q", c.tls != nil, c.conf)
	}
}
