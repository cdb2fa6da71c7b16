package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/bench"
	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A few milliseconds of every scenario that a rival knows, on the in-process server. Software that is not installed is
// left out, as in a run, and named.
func TestEveryRivalRunsEveryScenarioThatItKnows(t *testing.T) {
	srv, err := zktest.StartAddr("127.0.0.1:0")
	require.NoError(t, err)
	defer srv.Close()
	f, err := assemble(t.Context(), nil)
	defer f.close()
	require.NoError(t, err)
	for _, line := range f.absent {
		t.Log("left out:", line)
	}
	conn, events, err := zk.Connect([]string{srv.Addr()}, timeout, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer conn.Close()
	go func() {
		for range events {
		}
	}()
	var scenarios []bench.Scenario
	for _, s := range f.parts(nil, nil)[0].scenarios {
		s.Clients = []int{min(s.Clients[0], 8)}
		scenarios = append(scenarios, s)
	}
	rows, err := bench.Run(t.Context(), conn, bench.Config{Servers: srv.Addr(), Timeout: timeout, Peers: f.peers[1:],
		Scenarios: scenarios, Duration: 20 * time.Millisecond, Rounds: 1, Progress: func(p bench.Progress) { t.Log(time.Now(), p.Scenario.Name, p.Peer, p.Round) }})
	require.NoError(t, err)
	least := map[string]float64{"gozk-lock": 3, "floor": 2, "herd": 3, "curator": 3, "kazoo": 4}
	for _, r := range rows {
		require.Empty(t, r.Error)
		require.Positive(t, r.OpsPerS, "%s %s", r.Peer, r.Scenario)
		if r.Scenario != bench.Uncontended {
			continue
		}
		if n, ok := least[r.Peer]; ok {
			require.NotNil(t, r.RequestsPerOp, r.Peer)
			require.GreaterOrEqual(t, *r.RequestsPerOp, n, r.Peer)
			require.LessOrEqual(t, *r.RequestsPerOp, n+1, r.Peer) // some servers count pings, too
		} else {
			require.Nil(t, r.RequestsPerOp, "%s counts requests to other servers", r.Peer)
		}
	}
	require.Contains(t, (&report{Rows: rows}).markdown(), "| 1 | herd | ")
}

func TestWhatIsNotThereIsRefusedWithWhatThereIs(t *testing.T) {
	var out, progress strings.Builder
	err := run(t.Context(), options{scenarios: "contended,nosuch", servers: "127.0.0.1:1", rounds: 1, duration: time.Hour}, &out, &progress)
	require.ErrorContains(t, err, "no scenario nosuch: there are uncontended, async, ")
	err = run(t.Context(), options{peers: "herd,nosuch", servers: "127.0.0.1:1", ensemble: 1, rounds: 1, duration: time.Hour}, &out, &progress)
	require.ErrorContains(t, err, "no peer nosuch: there are herd, menagerie, gozk-lock, floor, curator, ")
	require.Empty(t, out.String()+progress.String())
}

func TestAPlaceNeedsServersThatDiffer(t *testing.T) {
	for want, o := range map[string]options{
		"--near needs --ensemble 3":                       {ensemble: 1, near: "leader"},
		"no place nowhere: there are leader, follower":    {ensemble: 3, near: "leader,nowhere"},
		"--servers names the servers":                     {ensemble: 3, servers: "127.0.0.1:1"},
		"--servers names the servers, so --ensemble and ": {ensemble: 1, servers: "127.0.0.1:1", near: "follower"},
	} {
		_, err := o.begin(t.Context())
		require.ErrorContains(t, err, want)
	}
}

func TestAPeerIsMeasuredAtTheLeaderAndAtAFollower(t *testing.T) {
	ensemble.Require(t)
	target, err := options{ensemble: 3, near: "leader,follower"}.begin(t.Context())
	require.NoError(t, err)
	defer target.close()
	for _, p := range target.places {
		c, err := net.Dial("tcp", p.server)
		require.NoError(t, err)
		_, err = io.WriteString(c, "srvr")
		require.NoError(t, err)
		told, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(told), "Mode: "+p.name)
	}
	s, err := zksync.Connect(t.Context(), target.servers)
	require.NoError(t, err)
	defer s.Close()
	one, _ := bench.ScenarioNamed(bench.Contended)
	rows, err := bench.Run(t.Context(), s.Conn(), bench.Config{Servers: target.servers, Timeout: timeout, Peers: target.near(bench.Peers()[:1]),
		Scenarios: []bench.Scenario{one.With([]int{2})}, Duration: 20 * time.Millisecond, Rounds: 1, Progress: func(bench.Progress) {}})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	for i, name := range []string{"menagerie@leader", "menagerie@follower"} {
		require.Equal(t, name, rows[i].Peer)
		require.Empty(t, rows[i].Error)
		require.Positive(t, rows[i].OpsPerS)
	}
}

func TestAServerThatDoesNotAnswerIsStopped(t *testing.T) {
	dir := ""
	s, err := startServer(func(d string) []string { dir = d; return []string{"sh", "-c", "echo no; sleep 1000"} })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.await(ctx, func(context.Context) error { return os.ErrDeadlineExceeded })
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoDirExists(t, dir)
}

func TestAProgramThatEndsOrTalksNonsenseIsAnErrorAndTheNextSliceHasANewOne(t *testing.T) {
	p := &foreign{name: "p", cleanup: func() {}, argv: []string{"sh", "-c", "read line; echo nonsense; read line"}}
	for range 2 {
		_, err := p.Run(t.Context(), bench.Slice{})
		require.ErrorContains(t, err, "nonsense")
	}
	p.argv = []string{"sh", "-c", "echo why >&2; read line; exit 1"}
	_, err := p.Run(t.Context(), bench.Slice{})
	require.ErrorContains(t, err, "why")
	p.argv = []string{"sh", "-c", "read line; read line"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Run(ctx, bench.Slice{})
	require.ErrorIs(t, err, context.Canceled)
	p.argv = []string{"sh", "-c", `while read line; do echo '{"ops":2,"elapsed_s":0.5,"cpu_s":0.25,"requests":6,"latencies_us":[1.5]}'; done`}
	for range 2 {
		got, err := p.Run(t.Context(), bench.Slice{})
		require.NoError(t, err)
		require.Equal(t, bench.Sample{Ops: 2, Elapsed: 500 * time.Millisecond, Latencies: []time.Duration{1500}, Traffic: received(6), CPU: 250 * time.Millisecond}, got)
	}
	require.NoError(t, p.Close())
}

func TestARequestIsBelowTheChroot(t *testing.T) {
	s := bench.Slice{Scenario: bench.Scenario{Name: "contended"}, Clients: 8, Duration: time.Second / 2, Path: "/x", Servers: "a:1,b:2/top", Timeout: time.Second}
	require.Equal(t, "contended 8 0.500 /top/x a:1,b:2 1000 4\n", request(s))
	s.Servers = "a:1"
	require.Equal(t, "contended 8 0.500 /x a:1 1000 4\n", request(s))
}

// written renders a page with these lines around the parts, from a folder of saved runs, and returns it.
func written(t *testing.T, results string) (text, dir string) {
	dir = t.TempDir()
	page := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n<!-- losses: written by bench/rivals -->\nstale\n<!-- end of losses -->\nbetween\n"+
		"<!-- tables: written by bench/rivals -->\nstale\n<!-- end of tables -->\nafter\n"), 0o600))
	for range 2 {
		require.NoError(t, run(t.Context(), options{write: page, results: results, render: true}, io.Discard, io.Discard))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	return string(got), dir
}

func TestThePageIsRenderedFromWhatWasSavedAndKeepsTheRest(t *testing.T) {
	results := t.TempDir()
	row := func(scenario, peer string, ratio float64) bench.Row {
		return bench.Row{Scenario: scenario, Peer: peer, Clients: 2, Rounds: 5, Reference: "menagerie", Ratio: ratio, RatioMin: ratio, RatioMax: ratio}
	}
	main := report{Server: "ZooKeeper 3", Peers: []string{"curator is Curator 5"}, Absent: []string{"etcd: none\nat all"}, Rows: []bench.Row{
		row("contended", "menagerie", 1), row("contended", "faster", 0.5), row("deep", "menagerie", 1), row("deep", "slower", 2), row("unheard-of", "menagerie", 1)}}
	require.NoError(t, main.save(results, mainRun))
	require.NoError(t, (&report{Server: "three of them", Rows: main.Rows[:2]}).save(results, "three-servers"))
	page, dir := written(t, results)
	require.NotContains(t, page, "stale")
	for _, part := range []string{"before\n<!-- losses: written by bench/rivals -->\n\n* **faster**: contended with 2 clients 2.00 x\n\n<!-- end of losses -->\nbetween\n<!-- tables: ",
		"; ZooKeeper 3, ", "The rivals: curator is Curator 5; left out: etcd: none.\n", "![Locks of several processes](images/bench-locks.svg)\n\n| scenario |",
		"| deep | 2 | menagerie<br>slower | ", "**contended**: Sessions that want one lock.", "| unheard-of | 2 | menagerie |", "### three servers\n\nMeasured on ", "; three of them, ", "\n\n<!-- end of tables -->\nafter\n"} {
		require.Contains(t, page, part)
	}
	require.Equal(t, 1, strings.Count(page, "### three servers"))
	for _, name := range []string{"locks", "many", "other"} {
		require.FileExists(t, filepath.Join(dir, "images", "bench-"+name+".svg"))
	}
	require.NoFileExists(t, filepath.Join(dir, "images", "bench-local.svg"))
	_, err := replaced("no markers", map[string]string{"losses": ""})
	require.ErrorContains(t, err, "lacks the lines")
}

// After a change of the program: make bench-page RIVALS='--write docs/benchmarks.md --render'
func TestThePageOfTheDocumentsIsWhatIsRenderedFromTheSavedRuns(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	dir := t.TempDir()
	was, err := os.ReadFile(filepath.Join(docs, "benchmarks.md"))
	require.NoError(t, err)
	page := filepath.Join(dir, "benchmarks.md")
	require.NoError(t, os.WriteFile(page, was, 0o600))
	require.NoError(t, render(page, "results"))
	is, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(was), string(is))
	charts, err := filepath.Glob(filepath.Join(dir, "images", "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, charts)
	for _, chart := range charts {
		is, err := os.ReadFile(chart)
		require.NoError(t, err)
		was, err := os.ReadFile(filepath.Join(docs, "images", filepath.Base(chart)))
		require.NoError(t, err)
		require.Equal(t, string(was), string(is), chart)
	}
}
