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
