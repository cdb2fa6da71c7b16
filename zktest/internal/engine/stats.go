package engine

import (
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// counters are what the four-letter words report about the server. All but the atomic ones are
// guarded by Server.mu.
type counters struct {
	accepted      int64 // connections; these two are for tests, and srst leaves them alone
	notifications int64 // watch events

	received, sent, bytesReceived atomic.Int64 // packets; a four-letter word is one

	connects  int64        // connect requests
	answered  int64        // bytes of replies to requests, without heartbeats
	responses wire.Summary // sizes of everything that is sent in a session
	last      int64        // the newest of them
	latency   wire.Summary // of all requests, in milliseconds
	reads     wire.Summary // the same, apart
	updates   wire.Summary
	expired   int64 // sessions
}

// reset forgets everything, as the word srst does.
func (k *counters) reset() {
	for _, a := range []*atomic.Int64{&k.received, &k.sent, &k.bytesReceived} {
		a.Store(0)
	}
	k.connects, k.answered, k.last, k.expired = 0, 0, 0, 0
	for _, s := range []*wire.Summary{&k.responses, &k.latency, &k.reads, &k.updates} {
		*s = wire.Summary{}
	}
}

// connStats are what the word cons reports about a connection.
type connStats struct {
	received, sent atomic.Int64 // packets
	established    time.Time
	lastOp         string // "null" before the first, "NA" after a reset
	lastXid        int64
	lastZxid       int64
	lastResponse   time.Duration // since the start of the server
	lastLatency    int64
	latency        wire.Summary
}

// reset forgets everything but since when the connection exists, as the word crst does.
func (k *connStats) reset() {
	k.received.Store(0)
	k.sent.Store(0)
	k.lastOp, k.lastXid, k.lastZxid, k.lastResponse, k.lastLatency, k.latency = "NA", -1, -1, 0, 0, wire.Summary{}
}
