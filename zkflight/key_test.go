package zkflight

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestEveryTextIsAKey(t *testing.T) {
	srv := zktest.Run(t)
	s := srv.Session(t)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) string { return string(b) })).Draw(t, "key")
		_, err := zksync.NewMutex(s, New[int](s, "/p").node(key)).TryLockContext(t.Context())
		require.NotErrorIs(t, err, zksync.ErrMisuse)
	})
}
