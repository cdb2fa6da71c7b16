package engine

import "time"

// link is the state of the network between the server and one client, which is
// identified by its session id.
type link struct {
	blockRequests int // number of faults that keep requests from arriving
	blockReplies  int
	latency       *latency // nil for none
	exiles        int      // of faults that keep the client from connecting here
}

func (l *link) latencies() latency {
	if l == nil || l.latency == nil {
		return latency{}
	}
	return *l.latency
}

// latency is what the network takes in each direction.
type latency struct{ request, reply time.Duration }
