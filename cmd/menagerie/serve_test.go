//go:build unix

package main

import (
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// serving starts serve on a free port and returns its address once it is ready.
func serving(t *testing.T, flags ...string) (*program, string) {
	t.Helper()
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--tick", "150ms"}, flags...)...)
	p.prints("\n")
	// It is printed before, but what comes through two pipes is read in any order.
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "keeps nothing") }, patience, pause, "%s", lazy{&p.stderr})
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

func TestServeSaysBeforehandThatItKeepsNothing(t *testing.T) {
	t.Parallel()
	p := run(t, "serve", "--help")
	p.succeeded()
	require.Contains(t, p.stdout.String(), "keeps nothing")
	q, addr := serving(t)
	require.Contains(t, q.stderr.String(), "keeps nothing")
	run(t, "lock", "/kept", "--servers", addr, "--", "true").succeeded()
	require.NotContains(t, q.stderr.String(), "/kept", "requests are printed with --verbose only")
}

func TestServeVerboseTellsRequestsSessionsAndConnections(t *testing.T) {
	t.Parallel()
	p, addr := serving(t, "--verbose")
	h := holder(t, &server{addr: addr}, "/watched")
	h.signal(syscall.SIGKILL)
	h.wait()
	expired := regexp.MustCompile(`session (0x[0-9a-f]+) expired\n`)
	require.Eventually(t, func() bool { return expired.MatchString(p.stderr.String()) }, patience, pause, "%s", lazy{&p.stderr})
	id := expired.FindStringSubmatch(p.stderr.String())[1]
	clock := `(?m)^\d\d:\d\d:\d\d\.\d{3} `
	for _, line := range []string{
		clock + `connection from 127\.0\.0\.1:\d+$`,
		clock + id + ` #0 connect zxid=0x1 code=0$`,
		clock + `session ` + id + ` opened, timeout 3s$`,
		clock + id + ` #\d+ create /watched zxid=0x\d code=0$`,
		clock + `connection from 127\.0\.0\.1:\d+ closed, session ` + id + `$`,
		clock + id + ` #0 closeSession zxid=0x`,
	} {
		told := regexp.MustCompile(line) // the last of them comes behind that of the expiry
		require.Eventually(t, func() bool { return told.MatchString(p.stderr.String()) }, patience, pause, "%s\n%s", line, lazy{&p.stderr})
	}
	require.Equal(t, "listening on "+addr+"\n", p.stdout.String(), "what programs read stays as it is")
}

func TestServeMakesNodesWithATimeToLiveWhenAsked(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{true, false} {
		flags := []string{"--extended-types"}
		if !allowed {
			flags = nil
		}
		_, addr := serving(t, flags...)
		conn, events, err := zk.Connect([]string{addr}, 30*time.Second, zk.WithLogInfo(false))
		require.NoError(t, err)
		for e := range events {
			if e.State == zk.StateHasSession {
				break
			}
		}
		_, err = conn.CreateTTL("/lease", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour)
		require.Equal(t, allowed, err == nil, "%v", err)
		conn.Close()
	}
}

// lazy is a buffer whose contents are looked at when they are printed.
type lazy struct{ b *buffer }

func (l lazy) String() string { return l.b.String() }
