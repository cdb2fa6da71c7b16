package recipes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever closes while another closes waits with it; in a bubble too, whose time goes on meanwhile.
func TestTwoWhoCloseASessionAtOnceReturnTogether(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		heal := v.partition(s)
		start := time.Now()
		closed := make(chan error)
		for range 2 {
			go func() { closed <- s.Close() }()
		}
		for range 2 {
			require.NoError(t, <-closed)
			v.took(start, 2*time.Second, "Close")
		}
		heal()
		time.Sleep(time.Minute) // the session expires
	})
}
