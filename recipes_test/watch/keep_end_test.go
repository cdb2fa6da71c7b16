package watch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// Without a session there is no node, and nothing is waited for.
func TestAKeptNodeIsClosedAtOnceWithoutASession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		k := zkwatch.Keep(v.Session(), "/kept", []byte("1"))
		require.NoError(t, k.SetData(t.Context(), []byte("2")))
		v.Server.Stop()
		time.Sleep(time.Minute)
		begun := time.Now()
		require.NoError(t, k.Close())
		v.AtOnce(begun, "Close")
		require.True(t, proving.IsClosed(k.Done()))
		require.ErrorIs(t, k.Err(), zksync.ErrReleased)
		v.Server.Restart()
	})
}
