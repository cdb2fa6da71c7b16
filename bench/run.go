package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// Peers are those of this module, in the order in which they are shown: itself, go-zookeeper's lock, and the floor.
func Peers() []Peer { return []Peer{menagerie, goZKLock, floor} }

// Config says what to measure. Servers must be reachable: see that before.
type Config struct {
	Servers   string
	Timeout   time.Duration // of the sessions
	Secured   Secured
	Peers     []Peer        // the first is the reference of all ratios
	Scenarios []Scenario    // with the numbers of clients to measure
	Duration  time.Duration // for each peer, scenario and number of clients, over all rounds
	Rounds    int
	// WarmUp is how long each peer works in its first scenario before anything is measured. A server that was just started
	// compiles what it executes often, and a transaction takes another way through it than a plain create: without this, whoever's
	// way is compiled last looks slow. In later scenarios a peer warms up for a slice, and so it does with zero.
	WarmUp time.Duration
	// Progress is called before each slice.
	Progress func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Scenario Scenario
	Clients  int
	Peer     string
	Round    int // 0 is the warm-up
	Rounds   int
	// Done and Total count the measurements: scenarios, with each number of clients.
	Done, Total int
	// Left is about how long the rest takes.
	Left time.Duration
}

const (
	// sliceLength is about how long a peer works before it is the turn of the next.
	sliceLength = 500 * time.Millisecond
	// warmDepth is how many waiters warm up a scenario that drains.
	warmDepth = 100
)

// Run measures all scenarios with those peers that know them. With an error, also when ctx ends (the cause is the error
// then), it returns the rows of what was measured before. If a peer fails while the servers are there, its row says so, and
// the others go on.
func Run(ctx context.Context, conn *zk.Conn, cfg Config) ([]Row, error) {
	_, root := splitServers(cfg.Servers)
	r := &runner{Config: cfg, conn: conn, root: root, base: fmt.Sprintf("/menagerie-bench-%016x", rand.Uint64()), warmed: map[string]bool{}}
	for _, s := range cfg.Scenarios {
		r.total += len(s.Clients)
	}
	r.began = time.Now()
	defer r.remove(root + r.base)
	if err := r.create(r.base); err != nil {
		return nil, err
	}
	var rows []Row
	for _, s := range cfg.Scenarios {
		for _, n := range s.Clients {
			part, err := r.measure(ctx, s, n)
			rows = append(rows, part...)
			if err != nil {
				return rows, err
			}
			r.done++
		}
	}
	return rows, nil
}

type runner struct {
	Config
	conn        *zk.Conn
	root, base  string // chroot, and the node below it
	slices      int    // so far
	warmed      map[string]bool
	done, total int
	began       time.Time
}

// contest is one measurement: the peers that take part, and what they have done by round.
type contest struct {
	scenario Scenario
	clients  int
	peers    []Peer
	rounds   [][]Sample // by peer and round
	failed   []error    // by peer
}

// measure lets the peers take turns; who begins moves on with each turn.
func (r *runner) measure(ctx context.Context, s Scenario, n int) ([]Row, error) {
	c := &contest{scenario: s, clients: n}
	for _, p := range r.Peers {
		if p.Knows(s.Name) {
			c.peers = append(c.peers, p)
			c.rounds = append(c.rounds, make([]Sample, r.Rounds))
		}
	}
	c.failed = make([]error, len(c.peers))
	for i := range c.peers {
		if err := r.warm(ctx, c, i); err != nil {
			return nil, err
		}
	}
	turns, length := r.turns(s)
	for round := range r.Rounds {
		for turn := range turns {
			for i := range c.peers {
				i = (i + round*turns + turn) % len(c.peers)
				sample, err := r.slice(ctx, c, i, n, round+1, length)
				if err != nil {
					return c.rows(), err
				}
				c.rounds[i][round].add(sample)
			}
		}
	}
	return c.rows(), nil
}

// turns is how many slices a peer has in a round, and how long they are.
func (r *runner) turns(s Scenario) (int, time.Duration) {
	if s.Drains {
		return 1, 0
	}
	turns := max(1, int(math.Round(float64(r.Duration)/float64(r.Rounds)/float64(sliceLength))))
	return turns, r.Duration / time.Duration(r.Rounds*turns)
}

// warm runs a slice that is not measured: a long one, if it is the peer's first.
func (r *runner) warm(ctx context.Context, c *contest, i int) error {
	_, d := r.turns(c.scenario)
	n, name := c.clients, c.peers[i].Name()
	switch {
	case c.scenario.Drains:
		n = min(n, warmDepth)
	case !r.warmed[name]:
		d = max(d, r.WarmUp)
		r.warmed[name] = true
	}
	_, err := r.slice(ctx, c, i, n, 0, d)
	return err
}

// slice gives a peer one turn. Its failure is an error only if the run cannot go on.
func (r *runner) slice(ctx context.Context, c *contest, i, n, round int, d time.Duration) (Sample, error) {
	if c.failed[i] != nil {
		return Sample{}, nil
	}
	p := c.peers[i]
	r.Progress(Progress{Scenario: c.scenario, Clients: c.clients, Peer: p.Name(), Round: round, Rounds: r.Rounds,
		Done: r.done, Total: r.total, Left: r.left(c, round)})
	r.slices++
	path := fmt.Sprintf("%s/%d", r.base, r.slices)
	if err := r.create(path); err != nil {
		return Sample{}, err
	}
	sample, err := p.Run(ctx, Slice{Scenario: c.scenario, Clients: n, Duration: d, Path: path,
		Servers: r.Servers, Timeout: r.Timeout, Secured: r.Secured})
	if ctx.Err() != nil {
		return Sample{}, context.Cause(ctx)
	}
	r.remove(r.root + path)
	if err == nil {
		if c.scenario.Together {
			sample.Elapsed += sample.QueueingElapsed
		}
		return sample, nil
	}
	if !r.serving(ctx) {
		return Sample{}, fmt.Errorf("bench: the servers do not answer any more: %w", c.named(i, err))
	}
	c.failed[i] = err
	if slices.Contains(c.failed, nil) {
		return Sample{}, nil
	}
	var all error
	for i, err := range c.failed {
		all = errors.Join(all, c.named(i, err))
	}
	return Sample{}, fmt.Errorf("bench: no peer is left: %w", all)
}

// named says whose error it is. A row has that in other fields.
func (c *contest) named(i int, err error) error {
	return fmt.Errorf("%s, %s with %s: %w", c.peers[i].Name(), c.scenario.Name, Clients(c.clients), err)
}

// left reckons with what has been done so far.
func (r *runner) left(c *contest, round int) time.Duration {
	done := float64(r.done) + float64(round)/float64(r.Rounds+1)
	if done == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(r.began)) * (float64(r.total) - done) / done)
}

// serving reports whether the servers answer.
func (r *runner) serving(ctx context.Context) bool {
	answered := make(chan error, 1)
	go func() {
		_, _, err := r.conn.Exists(r.root + r.base)
		answered <- err
	}()
	patience := time.NewTimer(r.Timeout)
	defer patience.Stop()
	select {
	case err := <-answered:
		return err == nil
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

func (r *runner) create(path string) error {
	_, err := r.conn.Create(r.root+path, nil, 0, r.Secured.acl())
	if err != nil {
		return fmt.Errorf("bench: cannot create %s: %w", path, err)
	}
	return nil
}

// remove removes what a run has made. It gives up at the first thing it cannot remove:
// the next run uses another name.
func (r *runner) remove(path string) {
	children, _, err := r.conn.Children(path)
	if err != nil {
		return
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, child := range children {
		group.Go(func() error {
			r.remove(strings.TrimSuffix(path, "/") + "/" + child)
			return nil
		})
	}
	_ = group.Wait()
	_ = r.conn.Delete(path, -1)
}
