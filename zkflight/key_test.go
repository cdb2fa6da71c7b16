package zkflight

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestKeysThatCanBeReadStayReadable(t *testing.T) {
	for key, name := range map[string]string{
		"user:42": "user:42", "a b": "a%20b", "a/b": "a%2Fb", "": "%", ".": "%2E", "..": "%2E%2E", ".a": ".a", "100%": "100%25",
	} {
		require.Equal(t, name, nodeName(key), "%q", key)
	}
	long := nodeName(strings.Repeat("ab/", 1000))
	require.Len(t, long, 64+2+64)
	require.True(t, strings.HasPrefix(long, "ab%2Fab%2F"), long)
	require.NotEqual(t, long, nodeName(strings.Repeat("ab/", 1001)))
}

func TestEveryTextIsAKeyOfItsOwn(t *testing.T) {
	srv := zktest.Run(t)
	s := srv.Session(t)
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b"), string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "c"))}
		for i, a := range keys {
			require.NotContains(t, nodeName(a), "/")
			for _, b := range keys[:i] {
				require.Equal(t, a == b, nodeName(a) == nodeName(b), "%q and %q", a, b)
			}
			// It is what a lock's path may be made of.
			_, err := zksync.NewMutex(s, "/p/"+nodeName(a)).TryLockContext(t.Context())
			require.NotErrorIs(t, err, zksync.ErrMisuse)
		}
	})
}
