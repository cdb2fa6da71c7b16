package zkprom

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-menagerie/menagerie/zksync"
)

// Collector counts what the sessions do that have it as their tracer (zksync.WithTracer): one, or several. Of several
// it shows sums, and the shortest of session timeouts and remaining leases. Many goroutines may use it at once.
type Collector struct {
	names *names
	jobs  *names
	err   error // of an option; Register returns it

	acquireWait, hold                   *prometheus.HistogramVec
	losses, deliveries, ticks, requests *prometheus.CounterVec
	reconnects, sessionsOpened          prometheus.Counter
	requestTime                         prometheus.Histogram
	items                               *prometheus.GaugeVec
	held, waiting, heldSince            *prometheus.Desc
	state, timeout, leaseRemains        *prometheus.Desc

	mu    sync.Mutex
	locks map[lockKey]*lock

	sessionMu sync.Mutex // a hook may be called while the session is locked, so none may wait for what asks the session
	sessions  []*zksync.Session
	closed    bool // one was
}

// Option changes a default of [New].
type Option func(*Collector)

// WithPaths names objects that have no zksync.WithName: if the path of one matches a pattern, as in path.Match (a *
// is one element), the first such pattern is its name. Without a match it is "other". Further calls add patterns.
func WithPaths(patterns ...string) Option {
	return func(c *Collector) { c.err = errors.Join(c.err, c.names.match(patterns)) }
}

// WithMaxNames sets how many different names the metrics can have. The default is 200. Further ones become "other".
// Jobs of a zkcron.Cron are counted on their own.
func WithMaxNames(n int) Option {
	return func(c *Collector) { c.names.most, c.jobs.most = n, n }
}

// New returns a Collector. It is registered nowhere yet. A malformed pattern makes Register fail.
func New(opts ...Option) *Collector {
	c := &Collector{
		names: &names{most: 200, seen: make(map[string]struct{})}, jobs: &names{most: 200, seen: make(map[string]struct{})},
		locks: make(map[lockKey]*lock),
	}
	c.describeLocks()
	c.describeSessions()
	c.describeRecipes()
	for _, o := range opts {
		o(c)
	}
	return c
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// begin creates the counters of these values. For Prometheus a counter that begins at 1 has not increased, so all of an object
// begin at 0 when it is first seen.
func begin(c *prometheus.CounterVec, values []string, of ...string) {
	for _, v := range values {
		c.WithLabelValues(append(of, v)...)
	}
}

// seconds returns the options of a histogram of times.
func seconds(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
}

// describeLocks creates the metrics of locks, by name and kind.
func (c *Collector) describeLocks() {
	// Without contention a lock takes a few milliseconds, and no time if it is handed over in the process. A dead holder
	// blocks for a session timeout and a tick: waits above 30 s have another cause.
	c.acquireWait = prometheus.NewHistogramVec(seconds("menagerie_acquire_wait_seconds", "How long acquisitions waited, by how they ended.",
		0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300), []string{"name", "kind", "outcome"})
	// Others wait during a hold: most are short. A leader may hold for weeks, and then only its end counts.
	c.hold = prometheus.NewHistogramVec(seconds("menagerie_hold_seconds", "How long leases were held, by how they ended.",
		0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 4*3600, 12*3600), []string{"name", "kind", "end"})
	c.losses = counters("menagerie_losses_total", "Leases that ended without a release.", "name", "kind", "reason")
	c.held = prometheus.NewDesc("menagerie_held", "Leases that are held.", []string{"name", "kind"}, nil)
	c.waiting = prometheus.NewDesc("menagerie_waiting", "Acquisitions that have begun and not ended.", []string{"name", "kind"}, nil)
	c.heldSince = prometheus.NewDesc("menagerie_held_since_seconds", "Unix time of the grant of the oldest lease that is held.", []string{"name", "kind"}, nil)
}

// describeSessions creates the metrics of sessions and requests.
func (c *Collector) describeSessions() {
	c.state = prometheus.NewDesc("menagerie_session_state", "Sessions in this state; closed is 1 if all are, else 0.", []string{"state"}, nil)
	c.timeout = prometheus.NewDesc("menagerie_session_timeout_seconds", "Session timeout that the servers granted.", nil, nil)
	c.leaseRemains = prometheus.NewDesc("menagerie_lease_remaining_seconds", "How long leases last if no server answers any more.", nil, nil)
	c.reconnects = prometheus.NewCounter(prometheus.CounterOpts{Name: "menagerie_reconnects_total", Help: "Connections that came back within their ZooKeeper session."})
	c.sessionsOpened = prometheus.NewCounter(prometheus.CounterOpts{Name: "menagerie_sessions_total", Help: "ZooKeeper sessions that were opened."})
	c.requests = counters("menagerie_requests_total", "Requests that have ended, also without an answer.", "op")
	// From a read out of a server's memory to a disk that takes seconds to sync.
	c.requestTime = prometheus.NewHistogram(seconds("menagerie_request_seconds", "How long requests took until the answer, or until the connection was lost.",
		0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10))
}

// describeRecipes creates the metrics of queues, jobs and groups.
func (c *Collector) describeRecipes() {
	c.deliveries = counters("menagerie_deliveries_total", "What happened to elements of queues.", "name", "event")
	c.ticks = counters("menagerie_ticks_total", "Ticks of jobs, by how they ended.", "job", "outcome")
	c.items = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "menagerie_items", Help: "Items of a group: running here now; done and failed here since the process began.",
	}, []string{"group", "state"})
}

// all are the metrics that keep their own values.
func (c *Collector) all() []prometheus.Collector {
	return []prometheus.Collector{
		c.acquireWait, c.hold, c.losses, c.reconnects, c.sessionsOpened, c.requests, c.requestTime, c.deliveries, c.ticks, c.items,
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	if c.err != nil {
		to <- prometheus.NewInvalidDesc(c.err)
	}
	for _, m := range c.all() {
		m.Describe(to)
	}
	for _, d := range []*prometheus.Desc{c.held, c.waiting, c.heldSince, c.state, c.timeout, c.leaseRemains} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.all() {
		m.Collect(to)
	}
	for _, m := range append(c.locksNow(), c.sessionsNow()...) {
		to <- m
	}
}

func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}
