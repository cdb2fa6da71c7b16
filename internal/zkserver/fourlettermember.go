package zkserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// serving tells whether the server has a leader, or needs none. Without one it only answers four-letter words.
func (s *Server) serving() bool { return s.member == nil || s.member.role != looking }

// number is the server's in its ensemble, counted from 1; 0 on its own.
func (s *Server) number() int {
	if s.member == nil {
		return 0
	}
	return s.member.index + 1
}

// place is a member's state as mntr calls it.
func (s *Server) place() string {
	if s.leads() {
		return "leading - broadcast"
	}
	return "following - broadcast"
}

// followers counts the members that the leader is in contact with.
func (s *Server) followers() int {
	n := 0
	for _, m := range s.member.ens.members {
		if m != s && m.inContact() {
			n++
		}
	}
	return n
}

// dumpGlobal prints the sessions as a member does that does not decide about them.
func (s *Server) dumpGlobal(b *strings.Builder) {
	all := slices.SortedFunc(maps.Values(s.sessions), func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	fmt.Fprintf(b, "Global Sessions(%d):\n", len(all))
	for _, sess := range all {
		fmt.Fprintf(b, "0x%x\t%dms\n", uint64(sess.id), sess.timeout.Milliseconds())
	}
}
