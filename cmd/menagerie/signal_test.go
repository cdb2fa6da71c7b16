//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// insist sends the signal again and again until the process has ended.
func (p *program) insist(sig syscall.Signal) syscall.WaitStatus {
	p.t.Helper()
	for {
		_ = p.cmd.Process.Signal(sig) // it may have ended
		select {
		case <-p.done:
			return p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// While servers are silent, closing takes two seconds. Whoever presses Ctrl-C again does not want to wait for that.
func TestASecondSignalEndsWhatTheFirstHasBegun(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a", "--timeout", "1m")
	waits := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "1m", "--", "true")
	s.queued(t, "/a", 2)
	watches := start(t, "ls", "/a", "--watch", "--servers", s.addr, "--timeout", "1m")
	watches.prints("waiting")
	holds := holder(t, s, "/b", "--timeout", "1m")
	defer s.Freeze()()
	for _, p := range []*program{waits, watches} {
		status := p.insist(syscall.SIGINT)
		require.True(t, status.Signaled(), "by the signal itself, not after closing; %s", p.stderr.String())
	}
	status := holds.insist(syscall.SIGTERM) // the first one is for CMD
	require.Equal(t, 143, status.ExitStatus())
	require.Contains(t, holds.stderr.String(), "SIGTERM while ending the session: what it held is free after the session timeout")
}

// Service managers send a signal to all processes of a unit: CMD has ended when the holder hears of it. The servers are far away.
func TestASignalThatWasForTheCommandLeavesTimeForTheRelease(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "1m", "--", "sh", "-c", "trap 'exit 7' TERM; echo holding; while :; do sleep 0.01; done")
	p.prints("holding")
	for _, session := range s.Sessions() {
		s.Delay(session.ID, 40*time.Millisecond, 60*time.Millisecond)
	}
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM)) // is passed on to CMD
	time.Sleep(40 * time.Millisecond)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	<-p.done
	require.Equal(t, 7, p.cmd.ProcessState.ExitCode(), p.stderr.String())
	require.Empty(t, contenders(t, s.addr, "/a"), "released")
}
