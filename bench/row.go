package bench

import (
	"math"
	"slices"
	"time"
)

// Row is a result: what one peer has done in one scenario with one number of clients. The names in JSON are part of the
// command's interface.
type Row struct {
	Peer     string  `json:"peer"`
	Scenario string  `json:"scenario"`
	Clients  int     `json:"clients"`
	OpsPerS  float64 `json:"ops_per_s"` // the median of the rounds
	// P50 and P99 are microseconds, over all rounds together.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// RequestsPerOp is nil if the peer cannot tell.
	RequestsPerOp *float64 `json:"requests_per_op"`

	Rounds     int     `json:"rounds"`
	OpsPerSMin float64 `json:"ops_per_s_min"`
	OpsPerSMax float64 `json:"ops_per_s_max"`
	// Ratio is how many times as fast as this peer the reference is: the median over the rounds. It is 1 for the reference
	// itself, and 0 if that did not take part.
	Reference     string  `json:"reference"`
	Ratio         float64 `json:"ratio"`
	RatioMin      float64 `json:"ratio_min"`
	RatioMax      float64 `json:"ratio_max"`
	BytesInPerOp  float64 `json:"bytes_in_per_op"` // received by the clients; Uncounted if the peer cannot tell
	BytesOutPerOp float64 `json:"bytes_out_per_op"`
	ClientCPU     float64 `json:"client_cpu_us_per_op"` // processor time of the clients' process; Uncounted if the peer cannot tell
	// Deep is there for scenarios that drain a queue.
	Deep *DeepRow `json:"deep,omitempty"`
	// Error is why the peer did not finish.
	Error string `json:"error,omitempty"`
}

// DeepRow has the parts of a scenario that drains a queue, for each waiter: to queue, and to drain.
type DeepRow struct {
	QueueUS       float64  `json:"queue_us"`
	DrainUS       float64  `json:"drain_us"`
	QueueRequests *float64 `json:"queue_requests"`
	DrainRequests *float64 `json:"drain_requests"`
	QueueBytesIn  float64  `json:"queue_bytes_in"`
	DrainBytesIn  float64  `json:"drain_bytes_in"`
}

// rows leaves out rounds in which not every peer has worked: those that were interrupted.
func (c *contest) rows() []Row {
	full := 0
	for full < len(c.rounds[0]) && c.worked(full) {
		full++
	}
	var rows []Row
	for i, p := range c.peers {
		r := Row{Peer: p.Name(), Scenario: c.scenario.Name, Clients: c.clients, Reference: c.peers[0].Name()}
		switch {
		case c.failed[i] != nil:
			r.Error = c.failed[i].Error()
		case full == 0:
			continue
		default:
			r.fill(c.scenario, c.rounds[i][:full], c.rounds[0][:full])
		}
		rows = append(rows, r)
	}
	return rows
}

// worked reports whether every peer that has not failed has done something in the round.
func (c *contest) worked(round int) bool {
	for i := range c.peers {
		if c.failed[i] == nil && c.rounds[i][round].Ops == 0 {
			return false
		}
	}
	return slices.Contains(c.failed, nil)
}

func (r *Row) fill(s Scenario, rounds, reference []Sample) {
	var total Sample
	var rates, ratios []float64
	for i, round := range rounds {
		total.add(round)
		rates = append(rates, round.opsPerS())
		if reference[i].Ops > 0 {
			ratios = append(ratios, reference[i].opsPerS()/round.opsPerS())
		}
	}
	r.Rounds = len(rounds)
	r.OpsPerS, r.OpsPerSMin, r.OpsPerSMax = spread(rates, 1)
	r.Ratio, r.RatioMin, r.RatioMax = spread(ratios, 3)
	slices.Sort(total.Latencies)
	r.P50, r.P99 = percentile(total.Latencies, 50), percentile(total.Latencies, 99)
	each := func(n int64) float64 {
		if n < 0 {
			return Uncounted
		}
		return round(float64(n)/float64(total.Ops), 2)
	}
	counted := func(n int64) *float64 {
		if n < 0 {
			return nil
		}
		v := each(n)
		return &v
	}
	r.RequestsPerOp = counted(total.Requests)
	r.BytesInPerOp, r.BytesOutPerOp = each(total.BytesIn), each(total.BytesOut)
	r.ClientCPU = Uncounted
	if total.CPU >= 0 {
		r.ClientCPU = micros(total.CPU, total.Ops)
	}
	if !s.Drains {
		return
	}
	drain := total.Traffic.minus(total.Queueing)
	if s.Together {
		total.Elapsed -= total.QueueingElapsed
	}
	r.Deep = &DeepRow{
		QueueUS: micros(total.QueueingElapsed, total.Ops), DrainUS: micros(total.Elapsed, total.Ops),
		QueueRequests: counted(total.Queueing.Requests), DrainRequests: counted(drain.Requests),
		QueueBytesIn: each(total.Queueing.BytesIn), DrainBytesIn: each(drain.BytesIn),
	}
}

// spread returns median, least and greatest, rounded to that many digits.
func spread(all []float64, digits int) (median, least, greatest float64) {
	if len(all) == 0 {
		return 0, 0, 0
	}
	all = slices.Sorted(slices.Values(all))
	middle := len(all) / 2
	median = all[middle]
	if len(all)%2 == 0 {
		median = (all[middle-1] + all[middle]) / 2
	}
	return round(median, digits), round(all[0], digits), round(all[len(all)-1], digits)
}

// percentile returns in microseconds the smallest latency that p percent do not exceed.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := (len(sorted)*p + 99) / 100
	return micros(sorted[max(i, 1)-1], 1)
}

// micros is microseconds for each of n. Local operations take less than one.
func micros(d time.Duration, n int) float64 {
	return round(float64(d)/float64(n)/float64(time.Microsecond), 2)
}

func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}
