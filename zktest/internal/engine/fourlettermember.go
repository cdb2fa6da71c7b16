package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// dumpGlobal prints the sessions as a member does that does not decide about them.
func (s *Server) dumpGlobal(b *strings.Builder) {
	all := slices.SortedFunc(maps.Values(s.sessions), func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	fmt.Fprintf(b, "Global Sessions(%d):\n", len(all))
	for _, sess := range all {
		fmt.Fprintf(b, "0x%x\t%dms\n", uint64(sess.id), sess.timeout.Milliseconds())
	}
}
