//go:build unix

package main

import (
	"fmt"
	"io"
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

// ask returns the answer of a server to a four-letter word, or to a frame.
func ask(t *testing.T, addr, what string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte(what))
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(answer)
}

// zxidOf returns the last transaction of a server.
func zxidOf(t *testing.T, addr string) (zxid int64) {
	t.Helper()
	_, after, _ := strings.Cut(ask(t, addr, "srvr"), "Zxid: ")
	_, err := fmt.Sscanf(after, "0x%x", &zxid)
	require.NoError(t, err)
	return zxid
}

// Clients that have seen a later transaction are refused, and tokens would go back.
func TestServeThatIsStartedAgainGoesOnWithLaterTransactions(t *testing.T) {
	t.Parallel()
	p, addr := serving(t)
	run(t, "lock", "/a", "--servers", addr, "--", "true").succeeded()
	before := zxidOf(t, addr)
	require.Greater(t, before>>32, int64(0), "an epoch")
	p.signal(os.Interrupt)
	require.Equal(t, 0, p.wait())
	_, addr = serving(t) // within the same second
	require.Greater(t, zxidOf(t, addr), before)
}

func TestTheTransactionsOfServeBeginAtTheInstantOfItsStart(t *testing.T) {
	t.Parallel()
	first := firstZxid(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Zero(t, first)
	for _, at := range []time.Time{time.Now(), time.Date(2080, 2, 29, 23, 59, 59, 999999999, time.UTC)} {
		require.Greater(t, firstZxid(at), first, at)
		require.Greater(t, firstZxid(at.Add(time.Millisecond))-firstZxid(at), int64(2_000_000), "more than a server can commit in that time")
		require.Equal(t, firstZxid(at)>>32+1, firstZxid(at.Add(time.Second))>>32)
		first = firstZxid(at)
	}
}

func TestServeSaysWhyItRefusesAClientThatHasSeenMore(t *testing.T) {
	t.Parallel()
	p, addr := serving(t)
	connect := append([]byte{0, 0, 0, 44, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x27, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16}, make([]byte, 16)...)
	require.Empty(t, ask(t, addr, string(connect)))
	want := regexp.MustCompile(`(?m)^menagerie: a client is refused: it has seen later transactions, and must try another server, session 0x0, ` +
		`error client 127\.0\.0\.1:\d+ has seen zxid 0x7fffffffffffffff, and the last one here is 0x[0-9a-f]+$`)
	require.Eventually(t, func() bool { return want.MatchString(p.stderr.String()) }, patience, pause, "%s", lazy{&p.stderr})
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
		clock + id + ` #0 connect zxid=0x[0-9a-f]{15} code=0$`,
		clock + `session ` + id + ` opened, timeout 3s$`,
		clock + id + ` #\d+ create /watched zxid=0x[0-9a-f]{15} code=0$`,
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
