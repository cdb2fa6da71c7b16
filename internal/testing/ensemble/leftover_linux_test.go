package ensemble_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

func TestOnlyFoldersThatNobodyUsesAnyMoreAreLeftovers(t *testing.T) {
	ensemble.Require(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	e := ensemble.ForTest(t, 1)
	old := func(name string, files ...string) string {
		dir := filepath.Join(tmp, name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		for _, f := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
			past := time.Now().Add(-time.Hour)
			require.NoError(t, os.Chtimes(filepath.Join(dir, f), past, past))
		}
		return dir
	}
	left := old("zk-ensemble-1", "lock")
	old("zk-ensemble-of-somebody-else", "log")
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(e.Dir(), "lock"), past, past))

	require.Equal(t, []string{left}, ensemble.RemoveLeftovers())
	require.NoDirExists(t, left)
	require.DirExists(t, e.Dir())
	require.DirExists(t, filepath.Join(tmp, "zk-ensemble-of-somebody-else"))
}
