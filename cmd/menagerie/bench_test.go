//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/bench"
)

func TestBenchPrintsAnArrayOfResults(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "bench", "--json", "--duration", "50ms", "--clients", "1,2", "--servers", s.addr)
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.NotContains(t, p.stderr.String(), "in-process")
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &rows))
	require.Len(t, rows, 6)
	for _, r := range rows {
		require.Subset(t, keys(r), []string{"peer", "scenario", "clients", "ops_per_s", "p50_us", "p99_us", "requests_per_op",
			"rounds", "ops_per_s_min", "ops_per_s_max", "reference", "ratio", "ratio_min", "ratio_max", "bytes_in_per_op", "bytes_out_per_op"})
		require.Positive(t, r["ops_per_s"])
		require.EqualValues(t, 5, r["rounds"])
	}
	left := s.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}

func TestBenchWithoutServersSaysThatItMeasuresItself(t *testing.T) {
	t.Parallel()
	p := run(t, "bench", "--duration", "20ms", "--clients", "1")
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.Contains(t, p.stderr.String(), "in-process ZooKeeper; a real ensemble has other numbers")
	lines := strings.Split(strings.TrimSuffix(p.stdout.String(), "\n"), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, strings.Fields("scenario clients peer ops/s p50 us p99 us requests/op min max menagerie is"), strings.Fields(lines[0]))
}

func TestBenchMeasuresTheScenariosAndPeersThatAreNamed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "bench", "--servers", s.addr, "--duration", "20ms", "--rounds", "2", "--scenario", "deep,barrier", "--scenario", "contended",
		"--peer", "gozk-lock,menagerie", "--clients", "3")
	require.Equal(t, 0, p.wait(), p.stderr.String())
	lines := strings.Split(p.stdout.String(), "\n")
	for i, want := range []string{"contended 3 menagerie", "contended 3 gozk-lock", "deep 3 menagerie", "deep 3 gozk-lock", "barrier 3 menagerie"} {
		require.Equal(t, want, strings.Join(strings.Fields(lines[1+i])[:3], " "))
	}
	require.Contains(t, p.stdout.String(), "requests to queue")
	require.Equal(t, "[1/3] contended, 3 clients\n[2/3] deep, 3 clients\n[3/3] barrier, 3 clients\n", p.stderr.String())
}

func TestBenchListsItsScenarios(t *testing.T) {
	t.Parallel()
	p := run(t, "bench", "--list", "--servers", nobody(t)) // which it does not need
	p.succeeded()
	for _, s := range bench.Scenarios {
		require.Contains(t, p.stdout.String(), "\n"+s.Name+" ")
	}
}

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"scenario":          {[]string{"--scenario", "deep,depe"}, []string{`unknown scenario "depe"`, "all", "uncontended", "double-barrier", "flight"}},
		"empty scenario":    {[]string{"--scenario", "contended,"}, []string{`unknown scenario ""`}},
		"peer":              {[]string{"--peer", "curator"}, []string{`unknown peer "curator"`, "menagerie, gozk-lock, floor"}},
		"peer and scenario": {[]string{"--peer", "floor,gozk-lock", "--scenario", "barrier"}, []string{"no peer of floor, gozk-lock can do the scenario barrier"}},
		"clients":           {[]string{"--scenario", "relock", "--clients", "2"}, []string{"the scenario relock has 1 client, so --clients 2 leaves nothing"}},
		"all clients":       {[]string{"--clients", "5000"}, []string{"--clients 5000 leaves nothing"}},
		"no number":         {[]string{"--clients", "1,x"}, []string{"whole numbers from 1 to 10000"}},
		"rounds":            {[]string{"--rounds", "0"}, []string{"above zero"}},
		"out, a file":       {[]string{"--out", file}, []string{"--out: cannot make the directory", "file"}},
		"out, below a file": {[]string{"--out", file + "/x"}, []string{"--out: cannot make the directory"}},
		"out, a system's":   {[]string{"--out", "/proc/self"}, []string{"--out: cannot write into the directory"}},
		"out, empty":        {[]string{"--out", ""}, []string{"--out is empty"}},
		"no peer":           {[]string{"--peer", ""}, []string{"--peer is empty"}},
		"no scenario":       {[]string{"--scenario="}, []string{"--scenario is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(name, "out, a s") && runtime.GOOS != "linux" {
				return // it needs a directory that nobody can write to, not even root
			}
			p := run(t, append([]string{"bench", "--duration", "1h", "--servers", nobody(t)}, c.args...)...) // before it connects
			p.failed(exitUsage, c.says...)
		})
	}
}

func TestBenchWritesAReportWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := filepath.Join(t.TempDir(), "new", "dir")
	p := run(t, "bench", "--servers", s.addr, "--auth", "digest:me:secret", "--duration", "20ms", "--scenario", "uncontended,once", "--out", dir)
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.Contains(t, p.stderr.String(), "the report is in "+dir+"\n")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	require.Equal(t, []string{"once.svg", "report.md", "results.json", "uncontended.svg"}, names)
	report, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(report), "| command | `menagerie bench --auth ... --duration 20ms --out "+dir+" --scenario uncontended,once --servers "+s.addr+"` |")
	require.Contains(t, string(report), "| servers | ZooKeeper 3.")
	require.NotContains(t, string(report), "secret")
}

func TestAnInterruptedBenchLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	earlier := filepath.Join(dir, "results.json")
	require.NoError(t, os.WriteFile(earlier, []byte("earlier"), 0o600))
	for format, want := range map[string]string{"--json": "[]\n", "--json=false": ""} {
		s := startServer(t) // with no session of an earlier bench: one would say that this one is ready for the signal
		p := start(t, "bench", "--duration", "1h", "--clients", "4", "--servers", s.addr, "--out", dir, format)
		require.Eventually(t, func() bool { return len(s.Sessions()) >= 3 }, patience, pause)
		p.signal(syscall.SIGINT)
		require.Equal(t, 130, p.wait())
		require.Contains(t, p.stderr.String(), "menagerie: interrupted by SIGINT\n")
		require.Equal(t, want, p.stdout.String())
		left := s.Children("/")
		require.Equal(t, []string{"zookeeper"}, left)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1, "no report of nothing")
		text, err := os.ReadFile(earlier)
		require.NoError(t, err)
		require.Equal(t, "earlier", string(text), "what was measured earlier is worth more")
	}
}

func TestABenchThatIsInterruptedBeforeItIsConnectedPrintsAnArray(t *testing.T) {
	t.Parallel()
	p := start(t, "bench", "--json", "--servers", nobody(t))
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "still trying") }, patience, pause)
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	require.Equal(t, "[]\n", p.stdout.String())
	p = run(t, "bench", "--json", "--servers", nobody(t), "--connect-timeout", "100ms")
	require.Equal(t, exitFailure, p.wait())
	require.Equal(t, "[]\n", p.stdout.String())
}

func TestABenchWhoseServerDiesSaysSoOnceAndPrintsAnArray(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "bench", "--duration", "1h", "--clients", "4", "--scenario", "contended", "--peer", "floor,gozk-lock", "--servers", s.addr, "--timeout", "1s", "--json")
	require.Eventually(t, func() bool { return len(s.Sessions()) >= 5 }, patience, pause)
	s.Close()
	require.Equal(t, exitFailure, p.wait())
	require.Equal(t, "[]\n", p.stdout.String())
	last := p.stderr.String()[strings.LastIndex(strings.TrimSpace(p.stderr.String()), "\n")+1:]
	// A client of gozk-lock that waits for the one before it when the server dies hears of nothing: then the end is the bound's.
	require.Regexp(t, "^menagerie: "+s.addr+": the servers do not answer any more: (gozk-lock|floor), contended with 4 clients: "+
		"([^:]+: zk: [^:]+|no answer within 1m2s)\n$", last)
}

func TestAnInterruptedBenchReportsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	p := start(t, "bench", "--duration", "50ms", "--scenario", "uncontended,deep", "--clients", "1,10000", "--peer", "menagerie",
		"--servers", s.addr, "--json", "--out", dir)
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "[2/2] deep") }, patience, pause)
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	require.Contains(t, p.stderr.String(), "menagerie: interrupted by SIGINT\n")
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &rows))
	require.Len(t, rows, 1)
	report, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(report), "**The run is not complete: interrupted by SIGINT.**")
	left := s.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}
