package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
)

// Config says what to measure. Servers must be reachable: see that before.
type Config struct {
	Servers  string
	Timeout  time.Duration // of the sessions
	Secured  Secured
	Duration time.Duration // for each peer and number of clients
	Clients  []int
	// Note is called with a line before each number of clients.
	Note func(string)
}

// Secured says how to reach servers that do not let everybody do everything. The zero value is
// for those that do.
type Secured struct {
	TLS  *tls.Config
	Auth []Credential
	ACL  []zk.ACL // of nodes; nil for open ones
}

// Credential is what the servers are shown after every handshake.
type Credential struct {
	Scheme string
	Secret []byte
}

func (s Secured) acl() []zk.ACL {
	if s.ACL == nil {
		return zk.WorldACL(zk.PermAll)
	}
	return s.ACL
}

// Row is a result. The names in JSON are part of the command's interface.
type Row struct {
	Peer          string  `json:"peer"`
	Scenario      string  `json:"scenario"`
	Clients       int     `json:"clients"`
	OpsPerS       float64 `json:"ops_per_s"`
	P50           float64 `json:"p50_us"`
	P99           float64 `json:"p99_us"`
	RequestsPerOp float64 `json:"requests_per_op"`
}

// sliceLength is about how long a peer works before it is the turn of the next.
const sliceLength = 500 * time.Millisecond

// Run measures all peers, for every number of clients in Config.Clients. conn is used to
// make and remove the nodes under which they meet; what it makes is gone when Run returns,
// as far as the servers allow.
func Run(ctx context.Context, conn *zk.Conn, cfg Config) ([]Row, error) {
	_, root := splitServers(cfg.Servers)
	base := fmt.Sprintf("/menagerie-bench-%08x", rand.Uint32())
	defer removeTree(conn, root+base)
	if err := makeNode(conn, root+base, cfg.Secured.acl()); err != nil {
		return nil, err
	}
	start := site{servers: cfg.Servers, timeout: cfg.Timeout, secured: cfg.Secured, path: base}
	first := min(warmUp, cfg.Duration)
	cfg.Note(fmt.Sprintf("warming up: %v for each of %d peers", first, len(peers)))
	if err := warm(ctx, root, conn, start.below("warm-up"), first); err != nil {
		return nil, err
	}
	var rows []Row
	for _, n := range cfg.Clients {
		sessions := "sessions"
		if n == 1 {
			sessions = "session"
		}
		cfg.Note(fmt.Sprintf("%s, %d %s: %v for each of %d peers", scenario(n), n, sessions, cfg.Duration, len(peers)))
		at := start.below(strconv.Itoa(n))
		if err := makeNode(conn, root+at.path, at.secured.acl()); err != nil {
			return nil, err
		}
		part, err := compare(ctx, root, conn, at, n, cfg.Duration)
		if err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// warmUp is how long each peer works at most before anything is measured. A server that was
// just started compiles what it executes often, and a transaction takes another way
// through it than a plain create: without this, whoever's way is compiled last looks
// slow.
const warmUp = 2 * time.Second

func warm(ctx context.Context, root string, conn *zk.Conn, at site, d time.Duration) error {
	if err := makeNode(conn, root+at.path, at.secured.acl()); err != nil {
		return err
	}
	_, err := compare(ctx, root, conn, at, 4, d)
	return err
}

// compare lets the peers take turns; who begins moves on with each round.
func compare(ctx context.Context, root string, conn *zk.Conn, at site, n int, d time.Duration) ([]Row, error) {
	rounds := max(1, int(math.Round(float64(d)/float64(sliceLength))))
	total := make([]sample, len(peers))
	for _, p := range peers {
		if err := makeNode(conn, root+at.path+"/"+p.name, at.secured.acl()); err != nil {
			return nil, err
		}
	}
	for round := range rounds {
		for i := range peers {
			turn := (round + i) % len(peers)
			p := peers[turn]
			s, err := runSlice(ctx, p.open, at.below(p.name), n, d/time.Duration(rounds))
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("bench: %s with %d clients: %w", p.name, n, err)
			}
			total[turn].add(s)
		}
	}
	rows := make([]Row, len(peers))
	for i, p := range peers {
		rows[i] = total[i].row(p.name, n)
	}
	return rows, nil
}

func scenario(clients int) string {
	if clients == 1 {
		return "uncontended"
	}
	return "contended"
}

func (s sample) row(peer string, clients int) Row {
	slices.Sort(s.latencies)
	r := Row{
		Peer: peer, Scenario: scenario(clients), Clients: clients,
		P50: percentile(s.latencies, 50), P99: percentile(s.latencies, 99),
	}
	if s.ops > 0 {
		r.OpsPerS = round(float64(s.ops)/s.elapsed.Seconds(), 1)
		r.RequestsPerOp = round(float64(s.requests)/float64(s.ops), 2)
	}
	return r
}

// percentile returns in microseconds the smallest latency that p percent do not exceed.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := (len(sorted)*p + 99) / 100
	return round(float64(sorted[max(i, 1)-1])/float64(time.Microsecond), 1)
}

func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func makeNode(conn *zk.Conn, path string, acl []zk.ACL) error {
	_, err := conn.Create(path, nil, 0, acl)
	if err != nil && err != zk.ErrNodeExists {
		return fmt.Errorf("bench: cannot create %s: %w", path, err)
	}
	return nil
}

// removeTree removes what a run has made. It gives up at the first thing it cannot remove:
// the next run uses another name.
func removeTree(conn *zk.Conn, path string) {
	children, _, err := conn.Children(path)
	if err != nil {
		return
	}
	for _, child := range children {
		removeTree(conn, path+"/"+child)
	}
	_ = conn.Delete(path, -1)
}
