//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

// holding are command lines that hold, and of somebody whom they keep out.
var holding = map[string]struct{ holds, waits []string }{
	"rlock": {[]string{"rlock", "/p"}, []string{"lock", "/p"}},
	"read":  {[]string{"lock", "/p"}, []string{"rlock", "/p"}},
	"elect": {[]string{"elect", "/p", "--id", "a"}, []string{"elect", "/p", "--id", "b"}},
	"sem":   {[]string{"sem", "/p", "--permits", "1"}, []string{"sem", "/p", "--permits", "1"}},
}

func args(what []string, s *server, more ...string) []string {
	return append(append(append([]string(nil), what...), "--servers", s.addr), more...)
}

func TestWhateverIsHeldIsWaitedForAsLongAsWasSaid(t *testing.T) {
	t.Parallel()
	for name, c := range holding {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			first := start(t, args(c.holds, s, "--", "sh", "-c", "echo holding; exec sleep 600")...)
			first.prints("holding")
			before := time.Now()
			p := run(t, args(c.waits, s, "--wait", "3s", "--", "echo", "ran")...)
			p.failed(exitNotObtained, "/p", s.addr, "3s")
			require.GreaterOrEqual(t, time.Since(before), 2*time.Second)
			require.Empty(t, p.stdout.String())
			require.Len(t, contenders(t, s.addr, "/p"), 1)
			w := start(t, args(c.waits, s, "--wait", "10m", "--", "sh", "-c", "echo $MENAGERIE_PATH $MENAGERIE_TOKEN")...)
			require.Eventually(t, func() bool { return len(contenders(t, s.addr, "/p")) == 2 }, patience, pause)
			first.signal(syscall.SIGTERM)
			require.Equal(t, 143, first.wait())
			w.succeeded()
			path, token, _ := strings.Cut(strings.TrimSpace(w.stdout.String()), " ")
			require.Equal(t, "/p", path)
			_, err := zksync.ParseToken(token)
			require.NoError(t, err)
		})
	}
}

func TestWhateverIsLostEndsTheCommandWith76AndItsGroupAfterGrace(t *testing.T) {
	t.Parallel()
	for name, c := range holding {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p := start(t, args(c.holds, s, "--timeout", "3s", "--grace", "300ms", "--",
				"sh", "-c", `trap '' TERM; sleep 600 & echo "grandchild $!."; wait; sleep 600`)...)
			p.prints(".")
			s.Close()
			p.failed(exitLost, "/p", s.addr, "lost", "session timeout of 3s")
			requireGone(t, grandchild(t, p))
		})
	}
}

func TestWhateverLosesItsNodeIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range holding {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p := start(t, args(c.holds, s, "--", "sh", "-c", "echo holding; exec sleep 600")...)
			p.prints("holding")
			rows := contenders(t, s.addr, "/p")
			require.Len(t, rows, 1)
			s.Delete(rows[0].Node)
			p.failed(exitLost, "/p", "removed its node")
		})
	}
}

func TestTheIDOfACandidateReachesWhoAsksForTheLeader(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := zksync.Connect(ctx, s.addr)
	require.NoError(t, err)
	defer session.Close()
	e := zkelection.New(session, "/e", zkelection.Candidate{})
	leads := func(flags ...string) string {
		p := start(t, args([]string{"elect", "/e"}, s, append(flags, "--", "sh", "-c", "echo leads; exec sleep 600")...)...)
		p.prints("leads")
		leader, err := e.Leader(ctx)
		require.NoError(t, err)
		p.signal(syscall.SIGTERM)
		require.Equal(t, 143, p.wait())
		return leader.ID
	}
	require.Equal(t, "web-1:8080", leads("--id", "web-1:8080"))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Regexp(t, "^"+host+`/\d+$`, leads())
	_, err = e.Leader(ctx)
	require.ErrorIs(t, err, zksync.ErrNoLeader)
}
