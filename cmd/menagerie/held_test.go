//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSemLetsAsManyInAsThereArePermits(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := start(t, "sem", "/s", "--permits", "3", "--weight", "2", "--servers", s.addr, "--", "sh", "-c", "echo holding; exec sleep 60")
	first.prints("holding")
	run(t, "sem", "/s", "--servers", s.addr, "--permits", "3", "--try", "--", "true").succeeded()
	run(t, "sem", "/s", "--servers", s.addr, "--permits", "3", "--weight", "2", "--try", "--", "true").failed(75, "/s")
	run(t, "sem", "/s", "--servers", s.addr, "--permits", "4", "--try", "--", "true").failed(2, "number of permits of the semaphore is 3, not 4; use the same number everywhere, or --resize (see")
	rows := contenders(t, s.addr, "/s")
	require.Len(t, rows, 1)
	require.EqualValues(t, "held", rows[0].State)
	require.EqualValues(t, "permit", rows[0].Kind)
	first.signal(syscall.SIGTERM)
	first.wait()
	require.Empty(t, contenders(t, s.addr, "/s"))
}

func TestSemChecksItsNumbers(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--permits", "0"}, {"--permits", "2", "--weight", "3"}, {"--permits", "2", "--weight", "0"}} {
		run(t, append(append([]string{"sem", "/s", "--servers", "127.0.0.1:1"}, args...), "--", "true")...).failed(2, "--")
	}
}

func TestReadersShareWhatALockHoldsAlone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	reader := start(t, "rlock", "/r", "--servers", s.addr, "--", "sleep", "60")
	s.queued(t, "/r", 1)
	run(t, "rlock", "/r", "--servers", s.addr, "--try", "--", "true").succeeded()
	run(t, "lock", "/r", "--servers", s.addr, "--try", "--", "true").failed(75, "/r")
	reader.signal(syscall.SIGINT)
	reader.wait()
	run(t, "lock", "/r", "--servers", s.addr, "--try", "--", "true").succeeded()
}

func TestACandidateWithAnEmptyIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", " "} {
		run(t, "elect", "/e", "--id", id, "--servers", "127.0.0.1:1", "--", "true").failed(2, "--id is empty")
	}
}

func TestOneOfTheElectedRunsAndTheNextTakesOver(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	leader := start(t, "elect", "/e", "--id", "a", "--servers", s.addr, "--", "sh", "-c", "echo leads; exec sleep 60")
	leader.prints("leads")
	next := start(t, "elect", "/e", "--id", "b", "--servers", s.addr, "--", "sh", "-c", "echo took over")
	s.queued(t, "/e", 2)
	run(t, "elect", "/e", "--servers", s.addr, "--try", "--", "true").failed(75, "/e")
	leader.signal(syscall.SIGTERM)
	require.Equal(t, 143, leader.wait())
	next.prints("took over")
	require.Zero(t, next.wait())
}
