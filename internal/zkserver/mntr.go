package zkserver

import (
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// mntr prints the monitoring values under the names of the real server, in its order, without those
// of parts that this server does not have.
func (s *Server) mntr(b *strings.Builder) {
	k := &s.stats
	put := func(key string, val any) { fmt.Fprintf(b, "zk_%s\t%v\n", key, val) }
	put("version", fullVersion)
	put("server_state", s.mode())
	if s.member != nil {
		put("peer_state", s.place())
	}
	put("ephemerals_count", s.tree.EphemeralCount())
	put("num_alive_connections", len(s.conns))
	put("avg_latency", k.latency.average())
	put("outstanding_requests", s.unanswered())
	put("znode_count", s.tree.Size())
	put("global_sessions", len(s.sessions))
	last, low, high := k.last, k.responses.low, k.responses.high
	if k.responses.n == 0 {
		last, low, high = -1, -1, -1
	}
	put("last_client_response_size", last)
	put("packets_sent", k.sent.Load())
	put("packets_received", k.received.Load())
	put("max_client_response_size", high)
	if s.member != nil && s.leads() {
		put("synced_followers", s.followers())
	}
	put("watch_count", s.watches.count())
	put("min_latency", k.latency.low)
	put("approximate_data_size", s.tree.DataSize)
	put("local_sessions", 0)
	put("uptime", s.elapsed().Milliseconds())
	put("max_latency", k.latency.high)
	if s.member != nil && s.leads() {
		put("learners", s.followers())
	}
	put("min_client_response_size", low)
	if s.member != nil {
		put("quorum_size", s.member.ens.n)
	}
	put("bytes_received_count", k.bytesReceived.Load())
	put("connection_request_count", k.connects)
	put("response_bytes", k.answered)
	put("stale_sessions_expired", k.expired)
	for _, m := range []struct {
		name string
		of   *summary
	}{
		{"node_created_watch_count", s.watches.fired.of(wire.EventCreated)},
		{"node_deleted_watch_count", s.watches.fired.of(wire.EventDeleted)},
		{"node_children_watch_count", s.watches.fired.of(wire.EventChildrenChanged)},
		{"node_changed_watch_count", s.watches.fired.of(wire.EventDataChanged)},
		{"updatelatency", &k.updates},
		{"readlatency", &k.reads},
	} {
		put("avg_"+m.name, m.of.average())
		put("min_"+m.name, m.of.low)
		put("max_"+m.name, m.of.high)
		put("cnt_"+m.name, m.of.n)
		put("sum_"+m.name, m.of.sum)
	}
}
