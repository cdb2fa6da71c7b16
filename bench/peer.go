package bench

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/tlsfiles"
)

// Peer is something that is measured beside others.
type Peer interface {
	// Name stands in the results.
	Name() string
	// Knows reports whether the peer can run the scenario of that name.
	Knows(scenario string) bool
	// Run runs and measures one slice. It returns soon after ctx has ended, and leaves no session behind.
	Run(ctx context.Context, s Slice) (Sample, error)
	Close() error
}

// Slice is what a peer does in its turn.
type Slice struct {
	Scenario Scenario
	Clients  int
	// Duration is how long the clients work. Each finishes the operation that it is at. A slice that drains a queue ends
	// when it has drained, however long that takes.
	Duration time.Duration
	// Path is below the chroot of Servers, and for this slice alone: an empty node that Run has made, and which it removes
	// with all that is below.
	Path    string
	Servers string        // as given, chroot included
	Timeout time.Duration // of the sessions
	Secured Secured
}

// Secured says how to reach servers that do not let everybody do everything. The zero value is
// for those that do.
type Secured struct {
	TLS   *tls.Config     // nil without TLS
	Files *tlsfiles.Files // certificates of TLS that are in files; nil for those in TLS
	Auth  []Credential
	ACL   []zk.ACL // of nodes; nil for open ones
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

// Sample is what one or more slices of a peer have measured.
type Sample struct {
	Ops       int
	Elapsed   time.Duration
	Latencies []time.Duration // of all operations, or of enough of them
	Traffic                   // of all operations
	// CPU is the processor time of the process in which the clients are, Uncounted if the peer cannot tell.
	CPU time.Duration
	// Queueing is the part of a slice that drains a queue before the holder releases.
	Queueing        Traffic
	QueueingElapsed time.Duration
}

// Traffic is what the clients have exchanged with the servers. Pings are no requests, but their bytes count.
type Traffic struct {
	Requests int64 // Uncounted if the peer cannot tell
	BytesIn  int64 // received by the clients
	BytesOut int64
}

// Uncounted stands in Traffic for what the peer cannot tell.
const Uncounted = -1

func (t Traffic) plus(o Traffic) Traffic {
	return Traffic{sum(t.Requests, o.Requests), sum(t.BytesIn, o.BytesIn), sum(t.BytesOut, o.BytesOut)}
}

func (t Traffic) minus(o Traffic) Traffic {
	return Traffic{difference(t.Requests, o.Requests), difference(t.BytesIn, o.BytesIn), difference(t.BytesOut, o.BytesOut)}
}

func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return Uncounted
	}
	return a + b
}

func difference(a, b int64) int64 {
	if a < 0 || b < 0 {
		return Uncounted
	}
	return a - b
}

func (s *Sample) add(o Sample) {
	s.Ops += o.Ops
	s.Elapsed += o.Elapsed
	s.Latencies = append(s.Latencies, o.Latencies...)
	s.Traffic = s.Traffic.plus(o.Traffic)
	s.Queueing = s.Queueing.plus(o.Queueing)
	s.QueueingElapsed += o.QueueingElapsed
	s.CPU = time.Duration(sum(int64(s.CPU), int64(o.CPU)))
}

// opsPerS is the rate of the sample.
func (s Sample) opsPerS() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Ops) / s.Elapsed.Seconds()
}
