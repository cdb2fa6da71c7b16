//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// demoResult is the last line of demo --json, with the types that it must have.
type demoResult struct {
	Workers         int  `json:"workers"`
	Rounds          int  `json:"rounds"`
	Expected        int  `json:"expected"`
	Counter         int  `json:"counter"`
	Overlaps        int  `json:"overlaps"`
	TokensMonotonic bool `json:"tokens_monotonic"`
	Killed          int  `json:"killed"`
}

func (p *program) lastLine() demoResult {
	p.t.Helper()
	lines := strings.Split(strings.TrimSuffix(p.stdout.String(), "\n"), "\n")
	dec := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	dec.DisallowUnknownFields()
	var r demoResult
	require.NoError(p.t, dec.Decode(&r), p.stdout.String())
	return r
}

func TestDemoStartsAServerOfItsOwnAndIsRight(t *testing.T) {
	t.Parallel()
	p := run(t, "demo", "--workers", "3", "--rounds", "20")
	p.succeeded()
	for _, text := range []string{"in-process ZooKeeper", "counter   60, expected 60", "overlaps  0 in 60 holds", "all 3 workers have met", "verdict   right"} {
		require.Contains(t, p.stdout.String(), text)
	}
}

func TestDemoWithAKilledHolderLosesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	tmp := t.TempDir()
	for range 3 { // the kill falls before or after the write, at random
		p := startIn(t, tmp, "demo", "--workers", "4", "--rounds", "25", "--kill", "--json", "--timeout", "3s", "--servers", s.addr)
		require.Equal(t, 0, p.wait(), p.stderr.String())
		require.Equal(t, demoResult{Workers: 4, Rounds: 25, Expected: 100, Counter: 100, TokensMonotonic: true, Killed: 1}, p.lastLine())
		require.Contains(t, p.stderr.String(), "SIGKILL")
		require.NotContains(t, p.stderr.String(), "in-process")
	}
	requireEmpty(t, tmp)
	left := s.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}

func TestDemoOfOneRoundOfOneWorkerSurvivesItsDeath(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "demo", "--workers", "1", "--rounds", "1", "--kill", "--json", "--timeout", "3s", "--servers", s.addr)
	require.Equal(t, demoResult{Workers: 1, Rounds: 1, Expected: 1, Counter: 1, TokensMonotonic: true, Killed: 1}, p.lastLine())
}

func TestDemoSurvivesAWorkerKilledByHand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "demo", "--workers", "2", "--rounds", "1500", "--json", "--timeout", "3s", "--servers", s.addr)
	pids := workersOf(t, p, 2)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.Equal(t, demoResult{Workers: 2, Rounds: 1500, Expected: 3000, Counter: 3000, TokensMonotonic: true, Killed: 1}, p.lastLine())
}

func TestDemoSurvivesARestartOfItsServer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "demo", "--workers", "3", "--rounds", "1000", "--json", "--timeout", "5s", "--servers", s.addr)
	workersOf(t, p, 3)
	s.Stop()
	s.Restart()
	require.Equal(t, 0, p.wait(), p.stderr.String())
	r := p.lastLine()
	require.Equal(t, 3000, r.Counter)
	require.Zero(t, r.Overlaps)
	require.True(t, r.TokensMonotonic)
}

func TestAnInterruptedDemoLeavesNeitherProcessesNorFiles(t *testing.T) {
	t.Parallel()
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		s := startServer(t)
		tmp := t.TempDir()
		p := startIn(t, tmp, "demo", "--workers", "3", "--rounds", "100000", "--servers", s.addr)
		pids := workersOf(t, p, 3)
		p.signal(sig)
		p.failed(code, "interrupted")
		for _, pid := range pids {
			require.False(t, alive(pid))
		}
		requireEmpty(t, tmp)
	}
}

func TestWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	tmp := t.TempDir() // nobody is left to remove the files
	p := startIn(t, tmp, "demo", "--workers", "2", "--rounds", "100000", "--servers", s.addr)
	pids := workersOf(t, p, 2)
	require.NoError(t, p.cmd.Process.Kill())
	for _, pid := range pids {
		requireGone(t, pid)
	}
}

// startIn is start with its own directory for temporary files.
func startIn(t *testing.T, tmp string, args ...string) *program {
	t.Helper()
	return startWith(t, []string{"TMPDIR=" + tmp}, args...)
}

// workersOf waits until n worker processes of a demo are at work and returns their pids.
func workersOf(t *testing.T, p *program, n int) []int {
	t.Helper()
	var pids []int
	require.Eventually(t, func() bool {
		pids = nil
		out, _ := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(p.cmd.Process.Pid)).Output()
		for line := range strings.Lines(string(out)) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[2] == workerName {
				pid, err := strconv.Atoi(fields[0])
				require.NoError(t, err)
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	}, patience, pause)
	return pids
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = os.Stat(dir)
	require.NoError(t, err)
}

func TestADemoForAWhileEndsThenWithHoweverManyRounds(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	start := time.Now()
	p := run(t, "demo", "--workers", "3", "--for", "1s", "--json", "--timeout", "3s", "--servers", s.addr)
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.GreaterOrEqual(t, time.Since(start), time.Second)
	require.Contains(t, p.stderr.String(), "3 processes, for 1s")
	require.Contains(t, p.stderr.String(), "all 3 workers have met")
	r := p.lastLine()
	require.GreaterOrEqual(t, r.Counter, 3, "each has one round at least, to read how many it has done")
	require.Equal(t, demoResult{Workers: 3, Rounds: r.Rounds, Expected: r.Counter, Counter: r.Counter, TokensMonotonic: true}, r)
}

func TestADemoIsLimitedByRoundsOrByTime(t *testing.T) {
	t.Parallel()
	run(t, "demo", "--rounds", "5", "--for", "1s").failed(2, "[rounds for]")
}
