//go:build unix

package child

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func always() bool { return true }

func TestAProgramIsFoundAsTheShellFindsIt(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), mode))
		return path
	}
	good, plain := file("good", 0o755), file("plain", 0o644)
	t.Setenv("PATH", dir)
	for name, want := range map[string]struct {
		path string
		err  error
	}{
		"good":           {good, nil},
		good:             {good, nil},
		"plain":          {"", ErrCannotRun},
		plain:            {"", ErrCannotRun},
		dir:              {"", ErrCannotRun},
		"absent":         {"", ErrNotFound},
		dir + "/absent":  {"", ErrNotFound},
		good + "/nested": {"", ErrCannotRun},
		"":               {"", ErrNotFound},
	} {
		path, err := Resolve(name)
		require.ErrorIs(t, err, want.err, name)
		require.Equal(t, want.path, path, name)
	}
}

func TestAProgramThatIsOnlyInTheWorkingDirectoryIsNotRunByAccident(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o755))
	t.Chdir(dir)

	t.Setenv("PATH", ".")
	_, err := Resolve("tool")
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "./tool")
}

func TestAnExitCodeIsWhatTheShellReports(t *testing.T) {
	for script, code := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		c, err := Start("/bin/sh", []string{"sh", "-c", script}, os.Environ(), always)
		require.NoError(t, err)
		require.Equal(t, code, c.ExitCode(), script)
		select {
		case <-c.Done():
		default:
			require.Fail(t, "ended, but not done")
		}
		c.Signal(syscall.SIGTERM) // too late, and harmless
	}
}

func TestAProgramThatTheKernelRefusesCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	garbage, orphan := filepath.Join(dir, "garbage"), filepath.Join(dir, "orphan")
	require.NoError(t, os.WriteFile(garbage, []byte{0, 1, 2, 3}, 0o755))
	require.NoError(t, os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755))
	_, err := Start(garbage, []string{"garbage"}, nil, always)
	require.ErrorIs(t, err, ErrCannotRun)
	_, err = Start(orphan, []string{"orphan"}, nil, always)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestTerminateReturnsAsSoonAsEverythingHasEnded(t *testing.T) {
	c, err := Start("/bin/sh", []string{"sh", "-c", "sleep 600 & wait"}, os.Environ(), always)
	require.NoError(t, err)
	before := time.Now()
	c.Terminate(time.Hour)
	require.Less(t, time.Since(before), time.Minute)
	require.Equal(t, 143, c.ExitCode())
}

func TestTerminateKillsWhatIgnoresIt(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	c, err := Start("/bin/sh", []string{"sh", "-c", `trap "" TERM; : >"$0"; while :; do sleep 600; done`, ready}, os.Environ(), always)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, 30*time.Second, time.Millisecond)
	c.Terminate(0)
	require.Equal(t, 137, c.ExitCode())
}

func TestTerminateReachesAStoppedCommand(t *testing.T) {
	c, err := Start("/bin/sleep", []string{"sleep", "600"}, os.Environ(), always)
	require.NoError(t, err)
	c.Signal(syscall.SIGSTOP)
	c.Terminate(time.Hour)
	require.Equal(t, 143, c.ExitCode())
}
