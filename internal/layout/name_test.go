package layout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTextsThatCanBeReadStayReadable(t *testing.T) {
	for text, name := range map[string]string{
		"user:42": "user:42", "a b": "a%20b", "a/b": "a%2Fb", "": "%", ".": "%2E", "..": "%2E%2E", ".a": ".a", "100%": "100%25",
	} {
		require.Equal(t, name, NodeName(text), "%q", text)
	}
	long := NodeName(strings.Repeat("ab/", 1000))
	require.Len(t, long, 64+2+64)
	require.True(t, strings.HasPrefix(long, "ab%2Fab%2F"), long)
	require.NotEqual(t, long, NodeName(strings.Repeat("ab/", 1001)))
}

func TestEveryTextHasANameOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b"), string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "c"))}
		for i, a := range texts {
			require.NotContains(t, NodeName(a), "/")
			for _, b := range texts[:i] {
				require.Equal(t, a == b, NodeName(a) == NodeName(b), "%q and %q", a, b)
			}
		}
	})
}

func TestANameTellsItsText(t *testing.T) {
	for _, text := range []string{"a", "..", ".", "/", "%2F", "\x00\xff", "a b"} {
		got, ok := Unescape(Escape(text))
		require.True(t, ok)
		require.Equal(t, text, got)
	}
	_, ok := Unescape("%zz")
	require.False(t, ok)
	long := string(make([]byte, 300))
	require.LessOrEqual(t, len(NodeName(long)), MaxName)
	require.NotEqual(t, NodeName(long), NodeName(long+"x"))
}
