//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/internal/testing/loopback"
)

// mute returns the address of a port that accepts connections, and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	l, err := loopback.Listen()
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }(c)
		}
	}()
	return l.Addr().String()
}

// lines are the lines of standard output, which are at most 100 columns wide.
func (p *program) outLines() []string {
	p.t.Helper()
	all := strings.Split(strings.TrimSuffix(p.stdout.String(), "\n"), "\n")
	for _, line := range all {
		require.LessOrEqual(p.t, utf8.RuneCountInString(line), maxColumns, line)
	}
	return all
}

func TestStatusOfAServerThatIsWell(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "status", "--servers", s.addr+"/app")
	p.succeeded()
	out := p.outLines()
	require.Regexp(t, `^ADDRESS +MODE +VERSION +LATENCY +CLIENTS +ZXID$`, out[0])
	require.Regexp(t, `^`+s.addr+` +standalone +3\.8\.0-menagerie +[0-9]+\.[0-9] ms +0 +0x[0-9a-f]+$`, out[1])
	require.Equal(t, []string{"ensemble: 1 of 1 serve, session timeouts 100ms to 1m0s, containers, TTL, persistent watches",
		"note: the chroot /app does not exist: the first session creates it, or --existing-chroot refuses it", "  fix: correct it if it is misspelt"}, out[2:])
	require.Zero(t, s.ChildCount("/app"), "status makes nothing, no chroot either")
	require.Empty(t, s.Sessions())
}

func TestStatusNamesEachServerThatIsDownWithTheReason(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	down, silent := nobody(t), mute(t)
	p := run(t, "status", "--servers", down+","+s.addr)
	p.succeeded()
	require.Contains(t, p.stdout.String(), "\nproblem: "+down+" is not reachable: connection refused: no server listens there\n  fix: start it, correct its port, or take it out of the connect string\n")
	require.Contains(t, p.stdout.String(), "ensemble: 1 of 2 serve")

	began := time.Now()
	p = run(t, "status", "--servers", down+","+silent, "--connect-timeout", "2s")
	require.Equal(t, exitFailure, p.wait())
	require.Less(t, time.Since(began), 3*time.Second)
	require.Empty(t, p.stderr.String())
	out := p.outLines()
	require.Regexp(t, `^`+down+` +down +- +- +- +-$`, out[1])
	require.Regexp(t, `^`+silent+` +down +- +- +- +-$`, out[2])
	require.Equal(t, "ensemble: no quorum", out[3])
	require.Contains(t, out[4], "problem: "+down+" is not reachable: connection refused", "the reasons come first")
	require.Contains(t, p.stdout.String(), "\nproblem: no quorum: no server is reachable\n")
	require.Contains(t, p.stdout.String(), silent+" is not reachable: silent: it accepted the connection")
}

func TestStatusIsInterrupted(t *testing.T) {
	t.Parallel()
	l, err := loopback.Listen()
	require.NoError(t, err)
	defer l.Close()
	p := start(t, "status", "--servers", l.Addr().String(), "--connect-timeout", "10m", "--acl-check", "/a")
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	p.signal(syscall.SIGTERM)
	p.failed(143, "interrupted by SIGTERM")
}

func TestStatusForPrograms(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	down := nobody(t)
	p := run(t, "status", "--json", "--servers", s.addr+","+down, "--timeout", "50ms")
	p.succeeded()
	var r servers.Report
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &r))
	require.True(t, r.Ensemble.Quorum)
	require.True(t, r.Servers[0].Serves)
	require.Equal(t, "connection refused: no server listens there", r.Servers[1].Error)
	require.Len(t, r.Findings, 2)
	require.Equal(t, down, r.Findings[0].Server)
	require.Equal(t, "--timeout 50ms is less than the servers grant: sessions last 100ms (at least two ticks)", r.Findings[1].Text)

	p = run(t, "status", "--json", "--servers", down)
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, p.stdout.String(), `"clients": {}`)
	require.Contains(t, p.stdout.String(), `"words": []`)
}

func TestStatusOverTLS(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ours := newAuthority(t)
	addr := ours.serveTLS(t, s, false)
	p := run(t, "status", "--servers", addr, "--tls-ca", ours.file)
	p.succeeded()
	require.Contains(t, p.stdout.String(), "all is well")
	p = run(t, "status", "--servers", addr)
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, strings.Join(strings.Fields(p.stdout.String()), " "), "is this a port for TLS or for other servers (2888, 3888), or has")
	require.Contains(t, p.stdout.String(), "\n  fix: start servers until more than half of the ensemble run, or correct its port or --tls\n")
	p = run(t, "status", "--servers", s.addr, "--tls-ca", ours.file, "--connect-timeout", "2s")
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, p.stdout.String(), "TLS: ")
	require.Contains(t, p.stdout.String(), "\n  fix: leave out --tls, or give its port for TLS\n")
	p = run(t, "status", "--servers", addr, "--tls-ca", newAuthority(t).file)
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, p.stdout.String(), "signed by unknown authority (")
	require.Contains(t, p.stdout.String(), "\n  fix: give its authority with --tls-ca\n")
	p = run(t, "status", "--servers", addr, "--tls-ca", ours.file, "--tls-server-name", "zk1", "--json")
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, p.stdout.String(), `"fix": "give its name with --tls-server-name"`)
	p = run(t, "status", "--servers", ours.serveTLS(t, s, true), "--tls-ca", ours.file)
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, p.stdout.String(), "\n  fix: show a certificate that it trusts with --tls-cert and --tls-key\n")
}

func TestStatusNamesWhatAnybodyMayChange(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "lock", "/locks/open", "--servers", s.addr, "--", "true").succeeded()
	out := s.checked(t, "/locks/open")
	require.Contains(t, out, "problem: /locks/open is world-writable: anybody can take its locks, and remove the holds of others "+
		"fix: in zkCli.sh: addauth digest USER:PASSWORD; setAcl -R /locks/open auth::cdrwa;")
	require.Contains(t, out, "note: /locks, a parent of /locks/open, is world-writable")
	require.Contains(t, out, "note: /, a parent of /locks/open, is world-writable")
	require.Less(t, strings.Index(out, "problem: "), strings.Index(out, "note: "))

	require.Contains(t, s.checked(t, "/"), "setAcl / auth::cdrwa,world:anyone:r", "not those of others")
	require.Contains(t, s.checked(t, "/none"), "problem: /none does not exist fix: correct --acl-check")
	p := run(t, "status", "--servers", nobody(t), "--acl-check", "/a", "--connect-timeout", "1s")
	require.Equal(t, exitFailure, p.wait())
	require.Contains(t, p.stdout.String(), "problem: the access lists of /a are not read: no answer within 1s")
	require.NotContains(t, p.stdout.String(), "secret")
}

func TestStatusNamesAnOpenNodeBelowALockThatIsNot(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "lock", "/mine/a", "--servers", s.addr, "--auth", "digest:me:secret", "--acl", "creator", "--", "true").succeeded()
	out := s.checked(t, "/mine/a")
	require.NotContains(t, out, "problem: ")
	require.NotContains(t, out, "/mine, a parent")
	conn, events, err := zk.Connect([]string{s.addr}, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	require.NoError(t, conn.AddAuth("digest", []byte("me:secret")))
	for _, path := range []string{"/mine/a/b", "/mine/a/b/c", "/mine/a/b/d"} {
		_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	require.Contains(t, s.checked(t, "/mine/a"), "problem: /mine/a/b is world-writable (with 2 more below /mine/a) fix: in zkCli.sh: addauth digest USER:PASSWORD; setAcl -R /mine/a auth::cdrwa;")
	for i := range mostChecked - 3 {
		_, err = conn.Create(fmt.Sprintf("/mine/a/%d", i), nil, 0, zk.AuthACL(zk.PermAll))
		require.NoError(t, err)
	}
	require.NotContains(t, s.checked(t, "/mine/a"), "are checked")
	_, err = conn.Create("/mine/a/more", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.Contains(t, s.checked(t, "/mine/a"), "note: only 1000 nodes below /mine/a are checked fix: give --acl-check a path below it")
}

// checked is what status --acl-check prints, on one line.
func (s *server) checked(t *testing.T, path string) string {
	t.Helper()
	p := run(t, "status", "--acl-check", path, "--servers", s.addr, "--auth", "digest:me:secret")
	p.succeeded()
	p.outLines()
	return strings.Join(strings.Fields(p.stdout.String()), " ")
}
