//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waiting waits until so many parties wait in some generation of the barrier.
func (s *server) waiting(t *testing.T, path string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		names := s.Children(path)
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(name, "parties-") && s.ChildCount(path+"/"+name) == n
		})
	}, patience, pause, "%d parties at %s", n, path)
}

func TestABarrierLetsAllGoWhenAllHaveCome(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for range 3 { // again and again
		var all []*program
		for i := range 3 {
			all = append(all, start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr, "--",
				"sh", "-c", `echo "$MENAGERIE_PATH $MENAGERIE_INDEX"; exit "$0"`, []string{"0", "7", "75"}[i]))
			if i < 2 {
				s.waiting(t, "/b", i+1)
				require.Empty(t, all[0].stdout.String())
			}
		}
		for i, p := range all {
			require.Equal(t, []int{0, 7, 75}[i], p.wait(), p.stderr.String())
			require.Equal(t, []string{"/b 2\n", "/b 1\n", "/b 0\n"}[i], p.stdout.String())
			require.Empty(t, p.stderr.String())
		}
	}
}

func TestABarrierWithoutACommandEndsWithZero(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := start(t, "barrier", "--parties", "2", "/b", "--servers", s.addr)
	s.waiting(t, "/b", 1)
	second := run(t, "barrier", "/b", "--parties", "2", "--json", "--servers", s.addr)
	second.succeeded()
	first.succeeded()
	require.Empty(t, first.stdout.String())
	var row struct{ Index, Parties int }
	require.NoError(t, json.Unmarshal([]byte(second.stdout.String()), &row))
	require.Equal(t, 0, row.Index)
	require.Equal(t, 2, row.Parties)
	run(t, "barrier", "/alone", "--parties", "1", "--servers", s.addr).succeeded()
}

func TestWhoDoesNotComeInTimeEndsTheMeetingForAllAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	patient := start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr, "--", "echo", "ran")
	s.waiting(t, "/b", 1)
	before := time.Now()
	hasty := run(t, "barrier", "/b", "--parties", "3", "--wait", "3s", "--servers", s.addr, "--", "echo", "ran")
	hasty.failed(exitNotObtained, "/b", s.addr, "3s")
	require.GreaterOrEqual(t, time.Since(before), 2*time.Second)
	p := run(t, "ls", "/b", "--servers", s.addr)
	p.succeeded()
	require.Equal(t, "/b: barrier, broken, reset it: 0 of 3 have arrived\n", p.stdout.String())
	patient.failed(exitFailure, "/b", fmt.Sprintf("menagerie: another process, %s pid %d, gave up at /b", host(t), hasty.cmd.Process.Pid), "before all 3 had arrived")
	// A server that is busy for 20 ms lists nobody. Which of the two is the first in the list is up to them.
	for text, said := range map[string]string{" of 3 have arrived: ": hasty.stderr.String(), " of 3 had arrived: ": patient.stderr.String()} {
		if _, list, listed := strings.Cut(said, text); listed {
			require.Contains(t, said, " 2"+text)
			require.Contains(t, list, fmt.Sprintf("%s pid %d", host(t), patient.cmd.Process.Pid))
		}
	}
	require.Empty(t, patient.stdout.String()+hasty.stdout.String())
	requireMeeting(t, s)
}

func TestAnInterruptedPartyEndsTheMeetingForAllAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		var all []*program
		for i := range 2 {
			all = append(all, start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr))
			s.waiting(t, "/b", i+1)
		}
		all[0].signal(sig)
		all[0].failed(code, "/b", "interrupted")
		all[1].failed(exitFailure, "/b", "gave up")
	}
	requireMeeting(t, s)
}

func TestAnInterruptedPartyTellsTheOthersOverASlowLink(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	leaves := start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr)
	s.waiting(t, "/b", 1)
	for _, session := range s.Sessions() {
		s.Delay(session.ID, 0, 300*time.Millisecond)
	}
	stays := start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr)
	s.waiting(t, "/b", 2)
	leaves.signal(syscall.SIGINT)
	leaves.failed(130, "/b", "interrupted")
	stays.failed(exitFailure, "/b", "gave up")
}

func TestAnInterruptedPartyEndsThoughTheServersAreSilent(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr)
	s.waiting(t, "/b", 1)
	defer s.Freeze()()
	p.signal(syscall.SIGINT)
	p.failed(130, "/b", "interrupted")
}

// requireMeeting has three meet at /b.
func requireMeeting(t *testing.T, s *server) {
	t.Helper()
	var all []*program
	for range 3 {
		all = append(all, start(t, "barrier", "/b", "--parties", "3", "--wait", "1m", "--servers", s.addr))
	}
	for _, p := range all {
		p.succeeded()
	}
}

func host(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// Whether the place of one that died is taken by one of this run or of the next.
func TestAPartyThatDiedIsReplaced(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var all []*program
	for i := range 2 {
		all = append(all, start(t, "barrier", "/b", "--parties", "3", "--timeout", "3s", "--servers", s.addr))
		s.waiting(t, "/b", i+1)
	}
	require.NoError(t, all[0].cmd.Process.Kill())
	s.waiting(t, "/b", 1)
	for range 2 {
		all = append(all, start(t, "barrier", "/b", "--parties", "3", "--servers", s.addr))
	}
	for _, p := range all[1:] {
		p.succeeded()
	}
	// All die, and the next run works.
	last := start(t, "barrier", "/b", "--parties", "3", "--timeout", "3s", "--servers", s.addr)
	s.waiting(t, "/b", 1)
	require.NoError(t, last.cmd.Process.Kill())
	s.waiting(t, "/b", 0)
	requireMeeting(t, s)
}

func TestTheCommandBehindABarrierGetsSignalsAndNoSessionIsKeptForIt(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "barrier", "/b", "--parties", "1", "--servers", s.addr, "--", "sh", "-c", `exec 2>/dev/null; trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.01; done`)
	p.prints("ready")
	require.Empty(t, s.Sessions())
	p.signal(syscall.SIGTERM)
	p.prints("got it")
	require.Equal(t, 9, p.wait())
	require.Empty(t, p.stderr.String())
}

func TestWrongCommandLinesOfBarrier(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"nothing":       {nil, "PATH is missing"},
		"no parties":    {[]string{"/a"}, "--parties is missing"},
		"zero parties":  {[]string{"/a", "--parties", "0"}, "whole number above zero"},
		"-- and no CMD": {[]string{"/a", "--parties", "1", "--"}, "CMD is missing"},
		"bad path":      {[]string{"a", "--parties", "1"}, "does not start with a slash"},
		"flag of CMD":   {[]string{"/a", "--parties", "1", "ls", "-l"}, "put -- in front of CMD"},
		"json and CMD":  {[]string{"/a", "--parties", "1", "--json", "--", "true"}, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, append([]string{"barrier"}, c.args...)...).failed(exitUsage, c.says, "--help")
		})
	}
	addr := nobody(t)
	run(t, "barrier", "/a", "--parties", "2", "--servers", addr, "--connect-timeout", "300ms").failed(exitFailure, addr, "within 300ms")
	run(t, "barrier", "/a", "--parties", "2", "--servers", addr, "--wait", "300ms").failed(exitNotObtained, addr, "300ms")
	run(t, "barrier", "/a", "--parties", "2", "--servers", addr, "--", "no-such-command-anywhere").failed(exitNotFound, "no-such-command-anywhere")
	s := startServer(t)
	run(t, "barrier", "/a", "--parties", "5000", "--servers", s.addr).failed(exitUsage, "5000")
	run(t, "barrier", "/a", "--parties", "1", "--servers", s.addr).succeeded()
	run(t, "barrier", "/a", "--parties", "2", "--servers", s.addr).failed(exitUsage, "menagerie: look at /a: the number of parties of the barrier is 1, not 2; use the same number everywhere, or first remove the barrier with menagerie reset (see")
}
