// Package examples holds the test of the programs beside it.
package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ends has a part of the last line of each example. The service ends when it is told to, and has a test of its own.
var ends = map[string]string{
	"cacherefill":      "was accepted: false",
	"javahalf":         "the two halves were never inside at the same time",
	"leader":           "none was made by two leaders",
	"liveconfig":       "all services have the last configuration",
	"nightly":          "the newest tick is that of",
	"partitionedbatch": "16 partitions are done, and none was worked on by two",
	"phasedbatch":      "three workers have ended all phases",
	"ratelimit":        "calls were made, and at most",
	"rollingrestart":   "at most 2 of 8 were down at a time",
	"shards":           "no name was held by two processes",
	"workqueue":        "10 jobs are done, 0 are left in the queue",
}

func TestEachExampleRunsToItsEnd(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	require.Len(t, mains, len(ends)+1, "each example has its last line here")
	for name, end := range ends {
		_, err := os.Stat(filepath.Join(name, "go.mod"))
		own := err == nil
		if own && os.Getenv("MENAGERIE_EXAMPLES") != "all" {
			continue // it is a module of its own, with much to compile: "make examples" runs it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a busy machine builds slowly
			defer cancel()
			run := exec.CommandContext(ctx, "go", "run", ".")
			run.Dir = name
			if own {
				run.Env = append(os.Environ(), "GOWORK=off")
			}
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), end)
		})
	}
}
