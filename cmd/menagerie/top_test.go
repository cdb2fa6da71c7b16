//go:build unix

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// steady is a frame without what differs from run to run: each line is a list of words.
func steady(t *testing.T, frame string) string {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, r := range [][2]string{
		{regexp.QuoteMeta(host) + `:\d+`, "HOST:N"}, {regexp.QuoteMeta(host) + ` pid \d+`, "HOST pid N"}, {`\d\d:\d\d:\d\dZ`, "TIME"}, {`[0-9a-f]{16}-[0-9a-f]{8}`, "TOKEN"}, {`0x[0-9a-f]+`, "SESSION"},
		{`\b(\d+m)?[0-9.]+m?s\b`, "D"}, {` +`, " "}, {` *\n`, "\n"},
	} {
		frame = regexp.MustCompile(r[0]).ReplaceAllString(frame, r[1])
	}
	return strings.TrimSpace(frame)
}

func TestTopPrintsOneFrameWithoutATerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/locks/nightly")
	start(t, "lock", "/locks/nightly", "--servers", s.addr, "--", "true")
	s.queued(t, "/locks/nightly", 2)
	conn := s.session(t).Conn()
	_, err := conn.Create("/locks/secret", []byte("x"), 0, zk.DigestACL(zk.PermAll, "u", "p"))
	require.NoError(t, err)
	p := run(t, "top", "/locks", "--servers", s.addr)
	p.succeeded()
	require.Equal(t, strings.TrimSpace(`
menagerie top /locks, by waiters at TIME
all is well as far as it was read: 1 of 1 server, 1 lock held, 1 waits

PATH KIND HOLDER HELD USUAL X WAIT LONGEST GRANTS/S
/locks/nightly lock sh@HOST:N D - - 1 D -

/locks/nightly: lock, held by HOST pid N for D; 1 waits
POS STATE FOR WHO BEHIND SINCE TOKEN SESSION
 0 held D sh@HOST:N - TIME TOKEN SESSION
 1 waiting D true@HOST:N sh@HOST:N TIME TOKEN SESSION

not seen
/locks/secret not readable with these credentials: see --auth`), steady(t, p.stdout.String()))
	require.NotContains(t, p.stdout.String(), "\x1b")
}

func TestTopOfAPathThatDoesNotExist(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "top", "/nothing", "--servers", s.addr)
	p.succeeded()
	require.Contains(t, p.stdout.String(), "/nothing does not exist\n")
}

func TestTopEndsWithOneIfTheServersAreSilent(t *testing.T) {
	t.Parallel()
	run(t, "top", "--servers", nobody(t), "--connect-timeout", "1s").failed(exitFailure, "within 1s", "connection refused")
	run(t, "top", "a", "--servers", nobody(t)).failed(exitUsage, "does not start with a slash")
	run(t, "top", "/a", "/b").failed(exitUsage, `found "/b" too`)
	s := startServer(t)
	defer s.Freeze()()
	run(t, "top", "--servers", s.addr, "--connect-timeout", "1s").failed(exitFailure, "within 1s")
}
