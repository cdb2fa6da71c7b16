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

// arrived counts a packet of that many bytes.
func (c *conn) arrived(bytes int) {
	c.stats.received.Add(1)
	c.srv.stats.received.Add(1)
	c.srv.stats.bytesReceived.Add(int64(bytes))
}

// left counts packets that are about to be written: whoever has read one shall find it counted.
func (c *conn) left(n int) {
	c.stats.sent.Add(int64(n))
	c.srv.stats.sent.Add(int64(n))
}

// respond sends a reply or an event and counts its size.
func (c *conn) respond(frame []byte, late time.Duration, urgent bool) {
	k := &c.srv.stats
	k.last = int64(len(frame) - 4)
	k.responses.Add(k.last)
	c.send(frame, late, urgent)
}

// observe counts a request that is answered now.
func (s *Server) observe(r *request) {
	ms := s.now().Sub(r.received).Milliseconds()
	if ms < 0 || r.conn == nil {
		return // somebody has set the clock back, or nobody has waited
	}
	s.stats.latency.Add(ms)
	if r.write() {
		s.stats.updates.Add(ms)
	} else {
		s.stats.reads.Add(ms)
	}
	k := &r.conn.stats
	k.lastOp, k.lastZxid, k.lastResponse, k.lastLatency = shortName(r), s.tree.Zxid, s.elapsed(), ms
	if r.xid >= 0 { // a heartbeat's is negative
		k.lastXid = int64(r.xid)
	}
	k.latency.Add(ms)
}

// shortName is how the word cons calls an operation. A write that failed has no name.
func shortName(r *request) string {
	if r.write() && r.code != wire.CodeOK {
		return "NA"
	}
	return r.call.Op.Short()
}
