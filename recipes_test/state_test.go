package recipes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// The end of the old connection and the beginning of the next one are noticed by different goroutines.
func TestTheStateIsConnectedAfterManyDisconnects(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(30 * time.Second))
		m := zksync.NewMutex(s, lockPath)
		for range 50 {
			l := v.lock(m)
			unlocked := make(chan error, 1)
			go func() { unlocked <- l.Unlock() }()
			v.disconnect(s)
			require.NoError(t, <-unlocked)
			v.queued(lockPath, 0)
			v.connected(s)
		}
		v.quiet()
		require.Equal(t, zksync.Connected, s.State())
		v.left(lockPath, 0, "unlocked")
		require.True(t, m.TryLock())
		m.Unlock()
	})
}
