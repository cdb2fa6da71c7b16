package zkserver

import (
	"fmt"
	"strings"
	"time"
)

// Version is what the server says it is: the version whose behaviour it reproduces.
const Version = "3.8.0"

var words = map[string]func(*Server, *strings.Builder){
	"ruok": func(_ *Server, b *strings.Builder) { b.WriteString("imok") },
	"srvr": (*Server).srvr,
	"stat": (*Server).stat,
	"mntr": (*Server).mntr,
}

func isWord(s string) bool {
	_, ok := words[s]
	return ok
}

// handleWord answers a four-letter word and closes the connection.
func (c *conn) handleWord(word string) {
	s := c.srv
	s.stats.received.Add(1)
	c.received.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	words[word](s, &b)
	c.send([]byte(b.String()))
	c.shut()
}

func (s *Server) srvr(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-menagerie, built in the process\n", Version)
	s.vitals(b)
}

func (s *Server) stat(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-menagerie, built in the process\nClients:\n", Version)
	for c := range s.conns {
		fmt.Fprintf(b, " /%s[1](queued=%d,recved=%d,sent=%d)\n",
			c.nc.RemoteAddr(), c.in.queue.len(), c.received.Load(), c.sent.Load())
	}
	b.WriteByte('\n')
	s.vitals(b)
}

func (s *Server) vitals(b *strings.Builder) {
	fmt.Fprintf(b, "Latency min/avg/max: %d/%s/%d\n",
		s.stats.latencyMin.Milliseconds(), s.averageLatency(), s.stats.latencyMax.Milliseconds())
	fmt.Fprintf(b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n",
		s.stats.received.Load(), s.stats.sent.Load(), len(s.conns), len(s.pending))
	fmt.Fprintf(b, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", s.tree.zxid, s.mode(), s.nodeCount())
}

// mntr prints the monitoring values under the names of the real server.
func (s *Server) mntr(b *strings.Builder) {
	for _, kv := range []struct {
		key string
		val any
	}{
		{"version", Version + "-menagerie, built in the process"},
		{"server_state", s.mode()},
		{"avg_latency", s.averageLatency()},
		{"max_latency", s.stats.latencyMax.Milliseconds()},
		{"min_latency", s.stats.latencyMin.Milliseconds()},
		{"packets_received", s.stats.received.Load()},
		{"packets_sent", s.stats.sent.Load()},
		{"num_alive_connections", len(s.conns)},
		{"outstanding_requests", len(s.pending)},
		{"uptime", s.elapsed().Milliseconds()},
		{"znode_count", s.nodeCount()},
		{"watch_count", s.watches.count()},
		{"ephemerals_count", s.tree.ephemeralCount()},
		{"approximate_data_size", s.tree.dataSize},
		{"global_sessions", len(s.sessions)},
		{"local_sessions", 0},
	} {
		fmt.Fprintf(b, "zk_%s\t%v\n", kv.key, kv.val)
	}
}

// nodeCount counts the root twice, as the real server does.
func (s *Server) nodeCount() int { return len(s.tree.nodes) }

func (s *Server) averageLatency() string {
	if s.stats.latencyCount == 0 {
		return "0.0"
	}
	ms := float64(s.stats.latencySum) / float64(time.Millisecond) / float64(s.stats.latencyCount)
	return fmt.Sprintf("%.4f", ms)
}

func (s *Server) observeLatency(r *request) {
	d := max(0, s.now().Sub(r.received)) // the clock may have been set back meanwhile
	if s.stats.latencyCount == 0 || d < s.stats.latencyMin {
		s.stats.latencyMin = d
	}
	s.stats.latencyMax = max(s.stats.latencyMax, d)
	s.stats.latencyCount++
	s.stats.latencySum += d
}
