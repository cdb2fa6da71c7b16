package ensemble_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

// kill returns before the threads of another process have stopped, and until then they answer.
func TestNoThreadRunsOnceAServerIsPaused(t *testing.T) {
	s := ensemble.ForTest(t, 1).Servers()[0]
	for range 200 {
		require.NoError(t, s.Pause())
		require.Empty(t, running(t, s.Pid()))
		require.NoError(t, s.Resume())
	}
}

// running is the threads of a process that are not stopped.
func running(t *testing.T, pid int) (states []string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		require.NoError(t, err)
		_, state, _ := strings.Cut(string(stat), ") ")
		if state[:1] != "T" {
			states = append(states, state[:1])
		}
	}
	return states
}
