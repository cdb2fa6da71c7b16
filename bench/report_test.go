package bench

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// sampleOf is a sample of so many operations in a second. Each takes so long, and two requests.
func sampleOf(ops int, latency time.Duration) Sample {
	s := Sample{Ops: ops, Elapsed: time.Second, Traffic: Traffic{Requests: int64(2 * ops), BytesIn: int64(100 * ops), BytesOut: int64(50 * ops)}, CPU: time.Duration(ops) * 30 * time.Microsecond}
	for range ops {
		s.Latencies = append(s.Latencies, latency)
	}
	return s
}

// reported is a report of a contest in which one peer is faster than menagerie, one is slower in some rounds, and one fails.
func reported(t *testing.T) Report {
	broken := NewPeer("broken", nil)
	two := contest{scenario: of(t, Contended, 2), clients: 2, peers: append(Peers(), broken),
		failed: []error{nil, nil, nil, errors.New("no answer\nwithin 30s")},
		rounds: [][]Sample{
			{sampleOf(100, 250*time.Microsecond), sampleOf(120, 200*time.Microsecond), sampleOf(90, 300*time.Microsecond)},
			{sampleOf(80, 310*time.Microsecond), sampleOf(150, 180*time.Microsecond), sampleOf(95, 290*time.Microsecond)},
			{sampleOf(200, 90*time.Microsecond), sampleOf(240, 80*time.Microsecond), sampleOf(220, 85*time.Microsecond)},
			make([]Sample, 3),
		}}
	uncounted := sampleOf(400, time.Millisecond)
	uncounted.Traffic, uncounted.CPU = Traffic{Uncounted, Uncounted, Uncounted}, Uncounted
	deep := sampleOf(500, 2*time.Millisecond)
	deep.Queueing, deep.QueueingElapsed = Traffic{Requests: 600, BytesIn: 20_000, BytesOut: 1}, 250*time.Millisecond
	deeper := contest{scenario: of(t, Deep, 500), clients: 500, peers: []Peer{menagerie, NewPeer("a<b", nil)}, failed: make([]error, 2),
		rounds: [][]Sample{{deep, {}}, {uncounted, {}}}} // the second round was interrupted
	return Report{
		Rows: append(two.rows(), deeper.rows()...), Command: "menagerie bench --scenario contended,deep", Machine: "a machine, 2 cores, linux/amd64",
		Go: "go1.26", Servers: "ZooKeeper 3.8.0 at zk1:2181", Began: time.Date(2026, 11, 25, 12, 30, 0, 0, time.UTC), Duration: 3 * time.Second, Rounds: 3,
		Ended: "interrupted by SIGINT",
	}
}

func TestTheReportSaysWhatWasMeasured(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, reported(t).Write(dir))
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, names, 4)
	for _, name := range names {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		golden := filepath.Join("testdata", filepath.Base(name))
		if *update {
			require.NoError(t, os.WriteFile(golden, got, 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), golden)
	}
	var rows []Row
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &rows))
	require.Equal(t, reported(t).Rows, rows)
}

func TestRatiosAreMediansWithinTheRounds(t *testing.T) {
	r := reported(t).Rows[1]
	require.Equal(t, 95.0, r.OpsPerS)
	require.Equal(t, []float64{80, 150}, []float64{r.OpsPerSMin, r.OpsPerSMax})
	require.Equal(t, 0.947, r.Ratio, "of 100/80, 120/150 and 90/95, and not 100/95 of the medians")
	require.Equal(t, []float64{0.8, 1.25}, []float64{r.RatioMin, r.RatioMax})
}

func TestWhatAPeerCannotTellIsNotZero(t *testing.T) {
	last := reported(t).Rows[5]
	require.Nil(t, last.RequestsPerOp)
	require.Nil(t, last.Deep.DrainRequests)
	require.Equal(t, []float64{Uncounted, Uncounted, Uncounted, Uncounted}, []float64{last.ClientCPU, last.BytesInPerOp, last.BytesOutPerOp, last.Deep.DrainBytesIn})
	require.Equal(t, 1, last.Rounds)
}

func TestChartsAreWellFormedHoweverGreatTheNumbers(t *testing.T) {
	for _, rate := range []float64{0, 0.02, 1, 7, 99, 123456, 5e6} {
		text := chart(of(t, Local, 64), []Row{{Peer: "a & b", Clients: 64, OpsPerS: rate, OpsPerSMin: rate / 2, OpsPerSMax: rate * 2}})
		ticks := strings.Count(text, `text-anchor="middle"`) - 1
		require.GreaterOrEqual(t, ticks, 2, rate)
		require.LessOrEqual(t, ticks, 6, rate)
		wellFormed(t, text)
	}
}

func TestTheTablesSayWhereTheReferenceLoses(t *testing.T) {
	row := func(peer string, ratio, least, most float64) Row {
		return Row{Peer: peer, Scenario: Contended, Clients: 2, Reference: "menagerie", Rounds: 5, Ratio: ratio, RatioMin: least, RatioMax: most}
	}
	rows := []Row{row("menagerie", 1, 1, 1), row("slower", 2, 1.5, 3), row("faster", 0.5, 0.4, 0.6), row("mostly", 0.8, 0.7, 1.1),
		row("floor", 0.5, 0.5, 0.5), {Peer: "broken", Scenario: Contended, Clients: 2, Reference: "menagerie", Error: "it\nhangs"}}
	page := Tables("###", rows, false)
	lost, _, _ := strings.Cut(page, "### contended")
	require.Equal(t, `### Where menagerie loses

* contended, 2 clients: faster makes 2.00 times as many operations
* contended, 2 clients: mostly makes 1.25 times as many operations (in the median; not in every round)
* contended, 2 clients: broken did not finish: it hangs

`, lost)
	require.Contains(t, page, "| 2 | slower | 0.00 | 0.00 to 0.00 | 0.00 | 0.00 | - | 0.00 | 0.00 | 2.00 x (1.50 to 3.00) |")
	require.NotContains(t, page, "svg")
	require.Contains(t, Tables("###", rows[:2], false), "In no scenario of this run another lock was faster.")
	require.Empty(t, Tables("###", nil, false))
}

// compared are rows of which one is faster, one mostly slower, one broken, and one of a queue that drains.
func compared() []Row {
	requests := 2.0
	row := func(scenario string, clients int, peer string, ratio, least, most float64) Row {
		return Row{Scenario: scenario, Clients: clients, Peer: peer, Reference: "menagerie", Rounds: 5, OpsPerS: 10, RequestsPerOp: &requests,
			BytesInPerOp: Uncounted, ClientCPU: 50, Ratio: ratio, RatioMin: least, RatioMax: most}
	}
	rows := []Row{row(Contended, 2, "menagerie", 1, 1, 1), row(Contended, 2, "faster", 0.5, 0.4, 0.6), row(Contended, 2, "floor", 0.5, 0.4, 0.6),
		{Scenario: Contended, Clients: 2, Peer: "broken", Reference: "menagerie", Error: "it\nhangs"},
		row(Contended, 8, "menagerie", 1, 1, 1), row(Contended, 8, "faster", 0.8, 0.7, 1.1), row(Deep, 500, "menagerie", 1, 1, 1), row(Deep, 500, "<slow>", 2000, 1500, 3000)}
	rows[6].Deep = &DeepRow{QueueRequests: &requests, DrainRequests: &requests, QueueBytesIn: 404, DrainBytesIn: 1584}
	return rows
}

func TestLossesHaveALineForEachPeer(t *testing.T) {
	require.Equal(t, `* **faster**: contended with 2 clients 2.00 x; contended with 8 clients 1.25 x, not in every round
* **broken**: contended with 2 clients: did not finish: it hangs
`, Losses(compared()))
	require.Equal(t, "In no scenario another lock was faster.\n", Losses(compared()[2:3]))
}

func TestCompactTablesShowEachRow(t *testing.T) {
	require.Equal(t, `| scenario | clients | peer | ops/s (min to max) | p50 us | p99 us | requests | bytes | CPU us | menagerie is (min to max) |
|---|---|---|---|---|---|---|---|---|---|
| contended | 2 | menagerie<br>faster<br>floor<br>broken | 10.0 (0.00 to 0.00)<br>10.0 (0.00 to 0.00)<br>10.0 (0.00 to 0.00)<br>- | 0.00<br>0.00<br>0.00<br>- | 0.00<br>0.00<br>0.00<br>- | 2.00<br>2.00<br>2.00<br>- | -<br>-<br>-<br>- | 50.0<br>50.0<br>50.0<br>- | -<br>0.50 x (0.40 to 0.60)<br>0.50 x (0.40 to 0.60)<br>- |
| contended | 8 | menagerie<br>faster | 10.0 (0.00 to 0.00)<br>10.0 (0.00 to 0.00) | 0.00<br>0.00 | 0.00<br>0.00 | 2.00<br>2.00 | -<br>- | 50.0<br>50.0 | -<br>0.80 x (0.70 to 1.10) |
| deep | 500 | menagerie<br><slow> | 10.0 (0.00 to 0.00)<br>10.0 (0.00 to 0.00) | 0.00<br>0.00 | 0.00<br>0.00 | 2.00 + 2.00<br>2.00 | 404 + 1 584<br>- | 50.0<br>50.0 | -<br>2 000 x (1 500 to 3 000) |
`, strings.ReplaceAll(Compact(compared()), "\u00a0", " "))
	require.Contains(t, Compact(compared()), "404\u00a0+\u00a01\u00a0584<br>")
	require.Equal(t, `| scenario | clients | ops/s (min to max) | p50 us | p99 us | requests | bytes | x faster | x floor | x broken | x <slow> |
|---|---|---|---|---|---|---|---|---|---|---|
| contended | 2 | 10.0 (0.00 to 0.00) | 0.00 | 0.00 | 2.00 | - | 0.50 x (0.40 to 0.60) | 0.50 x (0.40 to 0.60) | - | - |
| contended | 8 | 10.0 (0.00 to 0.00) | 0.00 | 0.00 | 2.00 | - | 0.80 x (0.70 to 1.10) | - | - | - |
| deep | 500 | 10.0 (0.00 to 0.00) | 0.00 | 0.00 | 2.00 + 2.00 | 404 + 1 584 | - | - | - | 2 000 x (1 500 to 3 000) |
`, Matrix(compared()))
}

func TestARatioChartHasABarForEachRatio(t *testing.T) {
	text := RatioChart("a & b", compared())
	wellFormed(t, text)
	for what, n := range map[string]int{`class="lost" x`: 2, `class="ours" x`: 1, `class="other" x`: 1, `class="whisker" d`: 4, "contended, 8 clients": 1, "&lt;slow&gt;": 1} {
		require.Equal(t, n, strings.Count(text, what), what)
	}
	require.Contains(t, RatioChart("", compared()[:3]), ">0.5 x<")
	require.Empty(t, RatioChart("", compared()[:1]))
}

func wellFormed(t *testing.T, text string) {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else {
			require.NoError(t, err)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for v, want := range map[float64]string{0.123: "0.12", 12.34: "12.3", 999.6: "1 000", 1234567: "1 234 567"} {
		require.Equal(t, want, grouped(v))
	}
}

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	require.Error(t, Report{}.Write(filepath.Join(t.TempDir(), "nowhere")))
}
