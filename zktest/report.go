package zktest

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// How much a failure message shows: enough to see what happened, and never a log file full.
const (
	reportedNodes    = 60
	reportedSessions = 20
	reportedOwned    = 10 // ephemerals of one session
	reportedWatches  = 20
	reportedRequests = 20
	reportedRules    = 20
	reportedData     = 60  // bytes of a node's data, in a tree
	reportedLine     = 300 // runes of a line
)

const everything = int(^uint(0) >> 1)

// Tree returns the nodes as indented text: name, kind, ACL unless open, the first bytes of the data.
func (s *Server) Tree() string { return s.tree(everything) }

// Dump returns everything for a person to read. The format may change.
func (s *Server) Dump() string {
	open, total := s.zk.Connections()
	return fmt.Sprintf("server: %s, zxid 0x%x, %d connections (%d in all), %d requests, %d watch events\n",
		stamp(s.Now()), s.Zxid(), open, total, s.Requests(), s.Notifications()) +
		"tree:\n" + s.Tree() + sessionText(s.Sessions(), everything, everything) + watchText(s.WatchList(), everything) +
		"last requests:\n" + s.lastRequests(reportedRequests)
}

// situation is what failure messages end with.
func (s *Server) situation() string {
	return "tree:\n" + s.tree(reportedNodes) + "last requests:\n" + s.lastRequests(reportedRequests)
}

// leftOver begins the message about what a test has left behind.
const leftOver = "zktest: left over at the end of the test; close clients before it ends, or allow it with WithLeftovers:"

// leftovers describes what a test has left behind; empty for nothing.
func (s *Server) leftovers() string {
	if s.opts.lenient {
		return ""
	}
	left := s.leftSessions() + s.leftWatches()
	if left == "" {
		return ""
	}
	return left + s.faultsText() + s.situation()
}

// leftSessions lists the sessions that a test has left behind.
func (s *Server) leftSessions() string {
	left := slices.DeleteFunc(s.Sessions(), func(x SessionInfo) bool { return s.hasGivenUp(x.ID) })
	return sessionText(left, reportedSessions, reportedOwned)
}

// leftWatches lists the watches that a test has left behind.
func (s *Server) leftWatches() string {
	left := slices.DeleteFunc(s.WatchList(), func(w Watch) bool { return s.hasGivenUp(w.Session) })
	return watchText(left, reportedWatches)
}

// faultsText lists the faults that are at work. They may be why something is left over: clients that Cleanup has closed
// could not say so to the server.
func (s *Server) faultsText() string {
	faults := s.activeFaults()
	if n := len(s.activeRules()); n > 0 {
		faults = append(faults, fmt.Sprintf("requests are intercepted (%d)", n))
	}
	if len(faults) == 0 {
		return ""
	}
	return cut("faults still at work, so that the end of a client may not have been heard: "+strings.Join(faults, ", "), reportedLine) +
		"\n(heal, thaw, restart or remove them at the end of the test)\n"
}

// activeFaults returns the faults that are at work, without rules.
func (s *Server) activeFaults() []string {
	faults := s.zk.Faults()
	s.netMu.Lock()
	defer s.netMu.Unlock()
	if s.refusals > 0 {
		faults = append(faults, "connections are refused")
	}
	return faults
}

// activeRules returns the rules that are at work: that hold something, or may still act.
func (s *Server) activeRules() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rules []string
	for _, j := range s.judges {
		if !j.spent() {
			rules = append(rules, j.text())
		}
	}
	return rules
}

// activeText lists the faults and rules that are at work, a line each.
func (s *Server) activeText() string {
	var b strings.Builder
	for _, fault := range s.activeFaults() {
		fmt.Fprintf(&b, "fault: %s\n", fault)
	}
	rules := s.activeRules()
	for _, rule := range rules[:min(len(rules), reportedRules)] {
		fmt.Fprintf(&b, "rule: %s\n", cut(rule, reportedLine))
	}
	tell(&b, len(rules)-reportedRules, "rules")
	return b.String()
}

// stuck describes the server, for a test that does not end.
func (s *Server) stuck() string {
	return s.activeText() + sessionText(s.Sessions(), reportedSessions, reportedOwned) + watchText(s.WatchList(), reportedWatches) + s.situation()
}

func (s *Server) tree(limit int) string {
	var b strings.Builder
	n := 0
	s.zk.Walk("/", func(p string, info tree.Info) bool {
		if own(p) {
			return true
		}
		if n++; n <= limit {
			depth := strings.Count(p, "/")
			if p == "/" {
				depth = 0
			}
			line := strings.Repeat("  ", depth) + "/" + nodeText(p, info)
			if limit != everything {
				line = cut(line, reportedLine)
			}
			b.WriteString(line + "\n")
		}
		return true
	})
	tell(&b, n-limit, "nodes")
	return b.String()
}

func nodeText(p string, n tree.Info) string {
	line := ""
	if p != "/" {
		line = shown(path.Base(p))
	}
	switch owner := n.Stat.EphemeralOwner; {
	case n.Container:
		line += " container"
	case n.TTL > 0:
		line += " ttl " + n.TTL.String()
	case owner != 0:
		line += " ephemeral " + hex(owner)
	}
	if !slices.Equal(n.ACL, wire.OpenACL()) {
		line += " " + aclText(n.ACL)
	}
	if len(n.Data) > 0 {
		line += " " + dataText(n.Data, reportedData)
	}
	return line
}

// aclText writes permissions as the command line client of ZooKeeper does.
func aclText(acl []wire.ACL) string {
	var parts []string
	for _, a := range acl {
		perms := ""
		for i, c := range "rwcda" {
			if a.Perms&(1<<i) != 0 {
				perms += string(c)
			}
		}
		parts = append(parts, shown(a.ID.Scheme+":"+a.ID.Name+":"+perms))
	}
	return "acl " + strings.Join(parts, ",")
}

// dataText shows data as a string if it is text, else in hexadecimal.
func dataText(d []byte, limit int) string {
	if !isText(d) {
		const most = 16
		if len(d) > most {
			return fmt.Sprintf("%d bytes %x...", len(d), d[:most])
		}
		return fmt.Sprintf("%d bytes %x", len(d), d)
	}
	if len(d) <= limit {
		return strconv.Quote(string(d))
	}
	for !utf8.RuneStart(d[limit]) {
		limit--
	}
	return fmt.Sprintf("%q... (%d bytes)", d[:limit], len(d))
}

func isText(d []byte) bool {
	return utf8.Valid(d) && !strings.ContainsFunc(string(d), func(r rune) bool {
		return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r'
	})
}

// shown quotes a path that would otherwise spoil the message.
func shown(p string) string {
	if !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(p)
	}
	return p
}

// sessionText lists sessions with their ephemerals; empty if there are none.
func sessionText(sessions []SessionInfo, limit, ephemerals int) string {
	var b strings.Builder
	for _, x := range sessions[:min(len(sessions), limit)] {
		state := "connected"
		if !x.Connected {
			state = "not connected"
		}
		fmt.Fprintf(&b, "session %s: %s, timeout %v, last heard %s, expires %s, watches %d\n",
			hex(x.ID), state, x.Timeout, stamp(x.LastHeard), stamp(x.Expires), x.Watches)
		for _, p := range x.Ephemerals[:min(len(x.Ephemerals), ephemerals)] {
			fmt.Fprintf(&b, "  ephemeral %s\n", cut(shown(p), reportedLine))
		}
		tell(&b, len(x.Ephemerals)-ephemerals, "ephemerals")
	}
	tell(&b, len(sessions)-limit, "sessions")
	return b.String()
}

// tell says how much was left out.
func tell(b *strings.Builder, more int, of string) {
	if more > 0 {
		fmt.Fprintf(b, "  ... and %d more %s\n", more, of)
	}
}

// lastRequests returns the end of the log, without heartbeats.
func (s *Server) lastRequests(n int) string {
	s.mu.Lock()
	var last []Request
	for r := range s.log.newest {
		if r.Op != Ping && !r.heartbeat {
			last = append(last, *r)
		}
		if len(last) == n {
			break
		}
	}
	s.mu.Unlock()
	if len(last) == 0 {
		return "  none\n"
	}
	var b strings.Builder
	for _, r := range slices.Backward(last) {
		fmt.Fprintf(&b, "  %s\n", cut(r.String(), reportedLine))
	}
	return b.String()
}

func cut(line string, limit int) string {
	if r := []rune(line); len(r) > limit {
		return string(r[:limit]) + "..."
	}
	return line
}

func stamp(t time.Time) string { return t.Format("15:04:05.000") }
