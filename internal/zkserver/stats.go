package zkserver

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// counters are what the four-letter words report about the server. All but the atomic ones are
// guarded by Server.mu.
type counters struct {
	accepted      int64 // connections; these two are for tests, and srst leaves them alone
	notifications int64 // watch events

	received, sent, bytesReceived atomic.Int64 // packets; a four-letter word is one

	connects  int64   // connect requests
	answered  int64   // bytes of replies to requests, without heartbeats
	responses summary // sizes of everything that is sent in a session
	last      int64   // the newest of them
	latency   summary // of all requests, in milliseconds
	reads     summary // the same, apart
	updates   summary
	expired   int64 // sessions
}

// reset forgets everything, as the word srst does.
func (k *counters) reset() {
	for _, a := range []*atomic.Int64{&k.received, &k.sent, &k.bytesReceived} {
		a.Store(0)
	}
	k.connects, k.answered, k.last, k.expired = 0, 0, 0, 0
	for _, s := range []*summary{&k.responses, &k.latency, &k.reads, &k.updates} {
		*s = summary{}
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
	latency        summary
}

// reset forgets everything but since when the connection exists, as the word crst does.
func (k *connStats) reset() {
	k.received.Store(0)
	k.sent.Store(0)
	k.lastOp, k.lastXid, k.lastZxid, k.lastResponse, k.lastLatency, k.latency = "NA", -1, -1, 0, 0, summary{}
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
func (c *conn) respond(frame []byte) {
	k := &c.srv.stats
	k.last = int64(len(frame) - 4)
	k.responses.add(k.last)
	c.send(frame)
}

// observe counts a request that is answered now.
func (s *Server) observe(r *request) {
	ms := s.now().Sub(r.received).Milliseconds()
	if ms < 0 || r.conn == nil {
		return // somebody has set the clock back, or nobody has waited
	}
	s.stats.latency.add(ms)
	if r.write() {
		s.stats.updates.add(ms)
	} else {
		s.stats.reads.add(ms)
	}
	k := &r.conn.stats
	k.lastOp, k.lastZxid, k.lastResponse, k.lastLatency = shortName(r), s.tree.Zxid, s.elapsed(), ms
	if r.xid >= 0 { // a heartbeat's is negative
		k.lastXid = int64(r.xid)
	}
	k.latency.add(ms)
}

// shortName is how the word cons calls an operation. A write that failed has no name.
func shortName(r *request) string {
	if r.write() && r.code != wire.CodeOK {
		return "NA"
	}
	return r.call.Op.Short()
}

// summary is the count, sum and extremes of a series of numbers.
type summary struct{ n, sum, low, high int64 }

func (s *summary) add(v int64) {
	if s.n == 0 || v < s.low {
		s.low = v
	}
	if s.n == 0 || v > s.high {
		s.high = v
	}
	s.n++
	s.sum += v
}

// average is rounded to four decimals and written as Java does it: 0.0, 1.875, 5.0E-4.
func (s *summary) average() string {
	if s.n == 0 {
		return "0.0"
	}
	v := (s.sum*20_000 + s.n) / (2 * s.n) // in ten thousandths
	if 0 < v && v < 10 {
		return strconv.FormatInt(v, 10) + ".0E-4"
	}
	digits := strconv.FormatInt(v%10_000+10_000, 10)[1:]
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		digits = "0"
	}
	return strconv.FormatInt(v/10_000, 10) + "." + digits
}
