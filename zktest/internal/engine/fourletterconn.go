package engine

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// connections returns the connections in the order in which they came.
func (s *Server) connections() []*conn {
	return slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
}

// queued counts the requests of each connection that have arrived and are not answered: they wait for
// their commit, or a rule holds them or one in front of them.
func (s *Server) queued() map[*conn]int {
	n := map[*conn]int{}
	for _, r := range s.pending {
		if r.conn != nil && r.conn.srv == s { // the history is that of the whole ensemble
			n[r.conn]++
		}
	}
	for q := range s.holding {
		for _, h := range q.requests {
			if !h.conn.aborted {
				n[h.conn]++
			}
		}
	}
	for c := range s.conns {
		if len(c.held.requests) > 0 {
			for a := range c.in.all {
				if a.frame != nil {
					n[c]++
				}
			}
		}
	}
	return n
}

// unanswered counts the requests that are on their way through the server.
func (s *Server) unanswered() int {
	sum := 0
	for _, n := range s.queued() {
		sum += n
	}
	return sum
}

// cons prints a line for each connection.
func (s *Server) cons(b *strings.Builder) {
	queued := s.queued()
	for _, c := range s.connections() {
		c.describe(b, queued[c], false)
	}
	b.WriteByte('\n')
}

func (c *conn) describe(b *strings.Builder, queued int, brief bool) {
	k := &c.stats
	fmt.Fprintf(b, " %s[%d](queued=%d,recved=%d,sent=%d", c.address(), c.interest(), queued, k.received.Load(), k.sent.Load())
	if !brief && c.session != 0 && !c.word {
		fmt.Fprintf(b, ",sid=0x%x,lop=%s,est=%d,to=%d", uint64(c.session), k.lastOp, k.established.UnixMilli(), c.timeout.Milliseconds())
		if k.lastXid >= 0 {
			fmt.Fprintf(b, ",lcxid=0x%x", k.lastXid)
		}
		average := int64(0)
		if k.latency.N > 0 {
			average = k.latency.Sum / k.latency.N
		}
		fmt.Fprintf(b, ",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
			uint64(k.lastZxid), k.lastResponse.Milliseconds(), k.lastLatency, k.latency.Low, average, k.latency.High)
	}
	b.WriteString(")\n")
}

// address is the peer's as Java prints it.
func (c *conn) address() string { return "/" + c.nc.RemoteAddr().String() }

// interest says what a real server would wait for on the socket: 1 for requests, 4 for room to write.
func (c *conn) interest() int {
	ops := 0
	if !c.word && !c.choked {
		ops |= 1
	}
	if c.out.len() > 0 {
		ops |= 4
	}
	return ops
}

// port returns the first TCP port that the server listens on, 0 if there is none.
func (s *Server) port() int {
	first := 0
	for l := range s.listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok && (first == 0 || a.Port < first) {
			first = a.Port
		}
	}
	return first
}

// dump prints the sessions and connections by the instant at which they expire, and the ephemeral nodes.
func (s *Server) dump(b *strings.Builder) {
	sets, names := map[time.Duration][]string{}, 0
	for _, sess := range s.sessions {
		if sess.bucket != 0 {
			sets[sess.bucket] = append(sets[sess.bucket], fmt.Sprintf("0x%x", uint64(sess.id)))
			names++
		}
	}
	b.WriteString("SessionTracker dump:\n")
	if s.leads() {
		b.WriteString("Session ")
		s.dumpSets(b, sets, names)
	} else {
		s.dumpGlobal(b)
	}
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(s.tree.Owners()))
	for _, id := range s.tree.Owners() {
		fmt.Fprintf(b, "0x%x:\n", uint64(id))
		for _, path := range s.tree.Owned(id) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	clear(sets)
	for _, c := range s.connections() {
		at := s.lastsUntil(c)
		sets[at] = append(sets[at], fmt.Sprintf("ip: %s sessionId: 0x%x", c.address(), uint64(c.session)))
	}
	b.WriteString("Connections dump:\nConnections ")
	s.dumpSets(b, sets, len(s.conns))
}

func (s *Server) dumpSets(b *strings.Builder, sets map[time.Duration][]string, elements int) {
	fmt.Fprintf(b, "Sets (%d)/(%d):\n", len(sets), elements)
	for _, at := range slices.Sorted(maps.Keys(sets)) {
		fmt.Fprintf(b, "%d expire at %s:\n", len(sets[at]), s.clock.at(at).Format("Mon Jan 02 15:04:05 MST 2006"))
		for _, name := range slices.Sorted(slices.Values(sets[at])) {
			fmt.Fprintf(b, "\t%s\n", name)
		}
	}
}

// lastsUntil is when a real server would close a connection that says nothing more. This one leaves
// that to the session's expiry; it is part of the format.
func (s *Server) lastsUntil(c *conn) time.Duration {
	every := s.cfg.HandshakeTimeout
	since, lasts := c.stats.established, every
	if sess := s.sessions[c.session]; sess != nil && sess.conn == c {
		since, lasts = sess.lastHeard, c.timeout
	}
	return (s.elapsed()-s.now().Sub(since)+lasts)/every*every + every
}
