package proving

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Names that others give their nodes.
const (
	LatchNode  = "_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f-latch-0000000000" // Curator's LeaderLatch
	OlderNode  = "_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f-lock-0000000000"  // Curator's first semaphore
	PermitNode = "0123456789abcdef0123456789abcdef"                         // kazoo's Semaphore
)

// Refuses checks the error of a call on a path that others use in a way that does not go with ours.
func Refuses(t *testing.T, err error, path, child string) {
	t.Helper()
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.NotErrorIs(t, err, zksync.ErrNotAcquired)
	for _, part := range []string{path, child, "use another path"} {
		require.ErrorContains(t, err, part)
	}
	var named *zksync.Error
	require.ErrorAs(t, err, &named)
	require.Equal(t, path, named.Path)
}
