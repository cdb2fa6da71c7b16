package terminal

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// That a terminal is one, the tests of the command show, which have one.
func TestFilesAndPipesAreNoTerminals(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	defer r.Close()
	require.False(t, Is(f))
	require.False(t, Is(w))
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, Is(null))
	require.False(t, Is(&strings.Builder{}))
	require.NoError(t, f.Close())
	require.False(t, Is(f))
}
