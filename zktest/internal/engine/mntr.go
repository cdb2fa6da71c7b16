package engine

import (
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// mntr prints the monitoring values under the names of the real server, in its order, without those
// of parts that this server does not have.
func (s *Server) mntr(b *strings.Builder) {
	k := &s.stats
	put := func(key string, val any) { fmt.Fprintf(b, "zk_%s\t%v\n", key, val) }
	put("version", s.version())
	st := s.order.standing()
	put("server_state", st.mode)
	if st.number > 0 {
		put("peer_state", st.peer)
	}
	put("ephemerals_count", s.tree.EphemeralCount())
	put("num_alive_connections", len(s.conns))
	put("avg_latency", k.latency.Average())
	put("outstanding_requests", s.unanswered())
	put("znode_count", s.tree.Size())
	put("global_sessions", len(s.sessions))
	last, low, high := k.last, k.responses.Low, k.responses.High
	if k.responses.N == 0 {
		last, low, high = -1, -1, -1
	}
	put("last_client_response_size", last)
	put("packets_sent", k.sent.Load())
	put("packets_received", k.received.Load())
	put("max_client_response_size", high)
	if st.mode == "leader" {
		put("synced_followers", st.followers)
	}
	put("watch_count", s.watches.Count())
	put("min_latency", k.latency.Low)
	put("approximate_data_size", s.tree.DataSize)
	put("local_sessions", 0)
	put("uptime", s.elapsed().Milliseconds())
	put("max_latency", k.latency.High)
	if st.mode == "leader" {
		put("learners", st.followers)
	}
	put("min_client_response_size", low)
	if st.number > 0 {
		put("quorum_size", st.members)
	}
	put("bytes_received_count", k.bytesReceived.Load())
	put("connection_request_count", k.connects)
	put("response_bytes", k.answered)
	put("stale_sessions_expired", k.expired)
	for _, m := range []struct {
		name string
		of   *wire.Summary
	}{
		{"node_created_watch_count", s.watches.Firings(wire.EventCreated)},
		{"node_deleted_watch_count", s.watches.Firings(wire.EventDeleted)},
		{"node_children_watch_count", s.watches.Firings(wire.EventChildrenChanged)},
		{"node_changed_watch_count", s.watches.Firings(wire.EventDataChanged)},
		{"updatelatency", &k.updates},
		{"readlatency", &k.reads},
	} {
		put("avg_"+m.name, m.of.Average())
		put("min_"+m.name, m.of.Low)
		put("max_"+m.name, m.of.High)
		put("cnt_"+m.name, m.of.N)
		put("sum_"+m.name, m.of.Sum)
	}
}
