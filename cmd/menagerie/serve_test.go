//go:build unix

package main

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// serving starts serve on a free port and returns its address once it is ready.
func serving(t *testing.T) (*program, string) {
	t.Helper()
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--tick", "50ms")
	p.prints("\n")
	addr, ok := strings.CutPrefix(p.stdout.String(), "listening on ")
	require.True(t, ok, p.stdout.String())
	return p, strings.TrimSuffix(addr, "\n")
}

func TestServePrintsItsAddressAndServesOtherProcesses(t *testing.T) {
	t.Parallel()
	p, addr := serving(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NotEqual(t, "0", port)
	l := run(t, "lock", "/a", "--servers", addr, "--", "true")
	l.succeeded()
	require.Equal(t, "listening on "+addr+"\n", p.stdout.String())
	require.Contains(t, p.stderr.String(), "keeps nothing")
}

func TestServeEndsWithZeroOnASignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p, addr := serving(t)
		holder(t, &server{addr: addr}, "/a") // open connections do not delay the end
		p.signal(sig)
		require.Equal(t, 0, p.wait())
	}
}

func TestServeNamesThePortThatIsInUse(t *testing.T) {
	t.Parallel()
	_, addr := serving(t)
	run(t, "serve", "--listen", addr).failed(exitFailure, addr, "in use", "--listen")
}
