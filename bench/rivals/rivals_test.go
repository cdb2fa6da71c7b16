package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/bench"
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
	for _, s := range f.parts(nil)[0].scenarios {
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
	page := (&report{field: f, rows: rows, server: "a server", rounds: 1}).markdown()
	require.Contains(t, page, "| 1 | herd | ")
}

func TestWhatIsNotThereIsRefusedWithWhatThereIs(t *testing.T) {
	var out, progress strings.Builder
	err := run(t.Context(), options{scenarios: "contended,nosuch", servers: "127.0.0.1:1", rounds: 1, duration: time.Hour}, &out, &progress)
	require.ErrorContains(t, err, "no scenario nosuch: there are uncontended, async, ")
	err = run(t.Context(), options{peers: "herd,nosuch", servers: "127.0.0.1:1", rounds: 1, duration: time.Hour}, &out, &progress)
	require.ErrorContains(t, err, "no peer nosuch: there are herd, menagerie, gozk-lock, floor, curator, ")
	require.Empty(t, out.String()+progress.String())
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
	p.argv = []string{"sh", "-c", `while read line; do echo '{"ops":2,"elapsed_s":0.5,"requests":6,"latencies_us":[1.5]}'; done`}
	for range 2 {
		got, err := p.Run(t.Context(), bench.Slice{})
		require.NoError(t, err)
		require.Equal(t, bench.Sample{Ops: 2, Elapsed: 500 * time.Millisecond, Latencies: []time.Duration{1500}, Traffic: received(6)}, got)
	}
	require.NoError(t, p.Close())
}

func TestARequestIsBelowTheChroot(t *testing.T) {
	s := bench.Slice{Scenario: bench.Scenario{Name: "contended"}, Clients: 8, Duration: time.Second / 2, Path: "/x", Servers: "a:1,b:2/top", Timeout: time.Second}
	require.Equal(t, "contended 8 0.500 /top/x a:1,b:2 1000 4\n", request(s))
	s.Servers = "a:1"
	require.Equal(t, "contended 8 0.500 /x a:1 1000 4\n", request(s))
}

func TestOnlyWhatIsBetweenTheMarkersIsReplaced(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) { require.NoError(t, os.WriteFile(page, []byte(text), 0o600)) }
	write("no markers\n")
	require.ErrorContains(t, checkPage(page), "lacks the lines")
	write("before\n" + begin + "\nold\n" + end + "\nafter\n")
	require.NoError(t, checkPage(page))
	for range 2 {
		require.NoError(t, writePage(page, "new\n\n"))
		got, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Equal(t, "before\n"+begin+"\n\nnew\n\n"+end+"\nafter\n", string(got))
	}
}
