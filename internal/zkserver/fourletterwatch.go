package zkserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The words about watches tell of data watches only, as the real server does; persistent ones are among
// them. A connection that has ever watched counts as one that watches.

func (s *Server) wchs(b *strings.Builder) {
	w := s.watches.data
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(w.byWatcher), len(w.byPath), w.n)
}

// wchc prints the watches by session.
func (s *Server) wchc(b *strings.Builder) {
	for _, c := range watching(maps.Keys(s.watches.data.byWatcher)) {
		fmt.Fprintf(b, "0x%x\n", uint64(c.session))
		for _, path := range slices.Sorted(maps.Keys(s.watches.data.byWatcher[c])) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	b.WriteByte('\n')
}

// wchp prints the watches by path.
func (s *Server) wchp(b *strings.Builder) {
	for _, path := range slices.Sorted(maps.Keys(s.watches.data.byPath)) {
		fmt.Fprintf(b, "%s\n", path)
		for _, c := range watching(maps.Keys(s.watches.data.byPath[path])) {
			fmt.Fprintf(b, "\t0x%x\n", uint64(c.session))
		}
	}
	b.WriteByte('\n')
}

// watching returns the connections among some watchers, in the order of their sessions.
func watching(who func(yield func(watcher) bool)) []*conn {
	var out []*conn
	for w := range who {
		if c, ok := w.(*conn); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *conn) int { return cmp.Compare(a.session, b.session) })
	return out
}
