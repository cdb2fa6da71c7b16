package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A wait for the line would last for ever.
func TestServeEndsWhenItCannotSayThatItIsReady(t *testing.T) {
	t.Parallel()
	// To Linux's own device nothing can be written.
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0")
	cmd.Stdout = full
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, exitFailure, cmd.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "cannot print that the server is ready")
}
