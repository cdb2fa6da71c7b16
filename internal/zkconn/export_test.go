package zkconn

import (
	"testing"
	"time"
)

// SetBeats changes, for the rest of a test, how many heartbeats there are in a session timeout.
func SetBeats(t *testing.T, n time.Duration) {
	old := beatsPerTimeout
	beatsPerTimeout = n
	t.Cleanup(func() { beatsPerTimeout = old })
}
