package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/watch"
)

// The words about watches tell of data watches only, as the real server does; persistent ones are among
// them. A connection that has ever watched counts as one that watches.

func (s *Server) wchs(b *strings.Builder) {
	w := s.watches
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(w.DataByWatcher()), len(w.DataByPath()), w.DataCount())
}

// wchc prints the watches by session.
func (s *Server) wchc(b *strings.Builder) {
	by := s.watches.DataByWatcher()
	for _, who := range slices.SortedFunc(maps.Keys(by), bySession) {
		fmt.Fprintf(b, "0x%x\n", uint64(sessionOf(who)))
		for _, path := range by[who] {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	b.WriteByte('\n')
}

// wchp prints the watches by path.
func (s *Server) wchp(b *strings.Builder) {
	by := s.watches.DataByPath()
	for _, path := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(b, "%s\n", path)
		for _, who := range slices.SortedFunc(slices.Values(by[path]), bySession) {
			fmt.Fprintf(b, "\t0x%x\n", uint64(sessionOf(who)))
		}
	}
	b.WriteByte('\n')
}

func bySession(a, b watch.Watcher) int { return cmp.Compare(sessionOf(a), sessionOf(b)) }
