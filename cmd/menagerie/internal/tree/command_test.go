package tree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACommandHasEachWordAsTheShellReadsIt(t *testing.T) {
	require.Equal(t, `release /a/b-1.c '$(x); it'\''s' ''`, Command("release", "/a/b-1.c", "$(x); it's", ""))
	for _, hidden := range []string{"\x1b[31m", "\n", "\u202e", "\u200b"} {
		require.Empty(t, Command("release", "/a"+hidden))
	}
}
