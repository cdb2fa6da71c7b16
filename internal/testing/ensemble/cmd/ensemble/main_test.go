//go:build unix

package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

func TestACommandGetsTheConnectStringAndItsExitCodeIsPassedOn(t *testing.T) {
	ensemble.Require(t)
	var stdout, stderr bytes.Buffer
	code := run([]string{"-servers", "1", "--", "sh", "-c", `echo "$MENAGERIE_SERVERS $MENAGERIE_TEST_SERVERS"; exit 7`},
		&stdout, &stderr, nil)
	require.Equal(t, 7, code, stderr.String())
	servers := strings.Fields(stdout.String())
	require.Len(t, servers, 2)
	require.Equal(t, servers[0], servers[1])
	_, err := net.Dial("tcp", servers[0])
	require.Error(t, err, "the server is stopped")
}

// onWrite sends a signal as soon as the command has said something.
type onWrite struct {
	said    bytes.Buffer // a field, because an embedded one would be written to without Write
	signals chan<- os.Signal
	once    sync.Once
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { w.signals <- syscall.SIGTERM })
	return w.said.Write(p)
}

func TestASignalIsPassedToTheCommand(t *testing.T) {
	ensemble.Require(t)
	signals := make(chan os.Signal, 1)
	stdout := &onWrite{signals: signals}
	var stderr bytes.Buffer
	code := run([]string{"-servers", "1", "--", "sh", "-c", `trap "echo told; exit 3" TERM; echo ready; while :; do sleep 0.05; done`},
		stdout, &stderr, signals)
	require.Equal(t, 3, code, stderr.String())
	require.Equal(t, "ready\ntold\n", stdout.said.String())
}

func TestACommandThatDiesOfASignalIsToldAsAShellWould(t *testing.T) {
	ensemble.Require(t)
	var stdout, stderr bytes.Buffer
	code := run([]string{"-servers", "1", "--", "sh", "-c", `kill -9 $$`}, &stdout, &stderr, nil)
	require.Equal(t, 128+9, code, stderr.String())
}

func TestACommandThatDoesNotExistIsExitCode127(t *testing.T) {
	ensemble.Require(t)
	var stdout, stderr bytes.Buffer
	code := run([]string{"-servers", "1", "--", "no-such-command-here"}, &stdout, &stderr, nil)
	require.Equal(t, 127, code)
	require.Contains(t, stderr.String(), "no-such-command-here")
}

func TestWithoutACommandItServesUntilASignal(t *testing.T) {
	ensemble.Require(t)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	signals := make(chan os.Signal, 1)
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- run([]string{"-servers", "1"}, writer, &stderr, signals) }()
	line := make([]byte, 100)
	n, err := reader.Read(line)
	require.NoError(t, err)
	addr := strings.TrimSpace(string(line[:n]))
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	signals <- os.Interrupt
	require.Zero(t, <-ended, stderr.String())
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
}

func TestASignalDuringTheStartEndsIt(t *testing.T) {
	ensemble.Require(t)
	var stdout, stderr bytes.Buffer
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	require.Equal(t, 1, run(nil, &stdout, &stderr, signals))
	require.Contains(t, stderr.String(), "context canceled")
}

func TestBadArgumentsAreOneLineAndExitCode2(t *testing.T) {
	for _, args := range [][]string{{"-servers", "many"}, {"-no-such-flag"}, {"-tick", "5"}, {"-D", "name"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(args, &stdout, &stderr, nil))
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
		require.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run([]string{"-servers", "2"}, &stdout, &stderr, nil))
	require.Equal(t, "ensemble: 2 servers: only 1 and 3 are supported\n", stderr.String())
}

func TestSystemPropertiesAreReadFromRepeatedFlags(t *testing.T) {
	opts, err := parse([]string{"-D", "a.b=c=d", "-D", "e=", "--", "true"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.b": "c=d", "e": ""}, opts.config.Properties)
}

func TestHelpShowsExamplesAndEveryFlag(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, run([]string{"-help"}, &stdout, &stderr, nil))
	for _, part := range []string{"Examples:", "-servers", "-install-only", "-force-sync", "-tick"} {
		require.Contains(t, stdout.String(), part)
	}
	require.Empty(t, stderr.String())
}
