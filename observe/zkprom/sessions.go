package zkprom

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-menagerie/menagerie/zksync"
)

// Opened implements zksync.SessionTracer.
func (c *Collector) Opened(s *zksync.Session) {
	c.sessionsOpened.Inc()
	c.sessionMu.Lock()
	defer c.sessionMu.Unlock()
	c.forgetClosed() // here too, for a process that nothing scrapes
	c.sessions = append(c.sessions, s)
}

// forgetClosed forgets sessions that are closed: that is final. sessionMu is held.
func (c *Collector) forgetClosed() {
	n := len(c.sessions)
	c.sessions = slices.DeleteFunc(c.sessions, func(s *zksync.Session) bool { return s.State() == zksync.Closed })
	c.closed = c.closed || len(c.sessions) < n
}

// StateChange implements zksync.StateTracer.
func (c *Collector) StateChange(data zksync.StateChangeData) {
	switch {
	case data.To != zksync.Connected:
	case data.From == zksync.Suspended:
		c.reconnects.Inc()
	case data.From == zksync.Lost:
		c.sessionsOpened.Inc()
	}
}

// Request implements zksync.RequestTracer.
func (c *Collector) Request(data zksync.RequestData) {
	c.requests.WithLabelValues(data.Op).Inc()
	c.requestTime.Observe(data.Duration.Seconds())
}

// sessionsNow are the gauges of sessions.
func (c *Collector) sessionsNow() (all []prometheus.Metric) {
	c.sessionMu.Lock()
	c.forgetClosed()
	open, in := slices.Clone(c.sessions), make(map[zksync.State]int)
	if len(open) == 0 && c.closed {
		in[zksync.Closed] = 1
	}
	c.sessionMu.Unlock()
	var timeouts, remaining []time.Duration
	for _, s := range open {
		in[s.State()]++
		timeouts = append(timeouts, s.Timeout())
		remaining = append(remaining, max(0, time.Until(s.Expires()))) // Expires is zero while there is no ZooKeeper session
	}
	for _, state := range []zksync.State{zksync.Connected, zksync.Suspended, zksync.Lost, zksync.Closed} {
		all = append(all, gauge(c.state, float64(in[state]), state.String()))
	}
	if len(open) > 0 {
		all = append(all, gauge(c.timeout, slices.Min(timeouts).Seconds()), gauge(c.leaseRemains, slices.Min(remaining).Seconds()))
	}
	return all
}
