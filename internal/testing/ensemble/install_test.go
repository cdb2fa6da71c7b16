//go:build unix

package ensemble

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeApt writes a program that notes how it was called and, if asked to, fails at a command.
func fakeApt(t *testing.T, failAt string) (path string, calls func() []string) {
	dir := t.TempDir()
	path, notes := filepath.Join(dir, "apt-get"), filepath.Join(dir, "notes")
	program := `#!/bin/sh
echo "$DEBIAN_FRONTEND: $*" >> "` + notes + `"
echo "output of $*"
case " $* " in *" ` + failAt + ` "*) exit 100;; esac
`
	require.NoError(t, os.WriteFile(path, []byte(program), 0o755))
	return path, func() []string {
		data, err := os.ReadFile(notes)
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

func TestInstallRefreshesTheListsAndInstallsThePackagesWithoutQuestions(t *testing.T) {
	apt, calls := fakeApt(t, "nothing")
	var log strings.Builder
	require.NoError(t, install(t.Context(), &log, apt, []string{"one", "two"}))
	require.Equal(t, []string{
		"noninteractive: -q -o DPkg::Lock::Timeout=300 update",
		"noninteractive: -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends one two",
	}, calls())
	require.Contains(t, log.String(), "output of")
}

func TestInstallStopsWhereAptFails(t *testing.T) {
	apt, calls := fakeApt(t, "update")
	var log strings.Builder
	require.ErrorContains(t, install(t.Context(), &log, apt, []string{"one"}), "ensemble: apt-get update: exit status 100")
	require.Len(t, calls(), 1)
}

func TestACheckForTheCompilerSeesThatARuntimeHasNone(t *testing.T) {
	java := filepath.Join(t.TempDir(), "java")
	require.NoError(t, os.WriteFile(java, []byte("#!/bin/sh\necho java.base@17\n"), 0o755))
	err := installation{java: java}.checkCompiler()
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "has no compiler")
	require.ErrorContains(t, err, "default-jdk-headless")
}
