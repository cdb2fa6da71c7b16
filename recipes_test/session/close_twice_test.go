package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
)

// Whoever closes while another closes waits with it; in a bubble too, whose time goes on meanwhile.
func TestTwoWhoCloseASessionAtOnceReturnTogether(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		heal := v.Partition(s)
		start := time.Now()
		closed := make(chan error)
		for range 2 {
			go func() { closed <- s.Close() }()
		}
		for range 2 {
			require.NoError(t, <-closed)
			v.Took(start, 2*time.Second, "Close")
		}
		heal()
		time.Sleep(time.Minute) // the session expires
	})
}
