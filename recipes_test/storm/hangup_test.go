//go:build !race

package storm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The client library has a goroutine that stands still for ever, one time in four, when its connection is closed during
// a handshake and there are watches: nobody could play on after that.
func TestAConnectionThatIsClosedDuringAHandshakeLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, false)
		defer w.report()
		for range 50 {
			h := &house{w: w, timeout: 10 * time.Second}
			conn := h.connect()
			_, _, _, err := conn.GetW("/")
			require.NoError(t, err)
			heal := w.srv.Freeze()
			w.srv.Disconnect(conn.SessionID())
			synctest.Wait()
			w.running.Go(func() { hangUp(conn, h.line) })
			synctest.Wait()
			heal()
			w.running.Wait()
		}
		w.end()
	})
}
