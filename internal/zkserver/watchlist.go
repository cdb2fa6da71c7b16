package zkserver

import (
	"cmp"
	"slices"
	"strings"
)

// WatchKind is what a watch sees and how long it lives.
type WatchKind int

// The kinds of watches.
const (
	WatchData       WatchKind = iota // gone after one change of the node
	WatchChildren                    // gone after one change of its children
	WatchPersistent                  // stays
	WatchRecursive                   // stays, and sees everything below its path too
)

// WatchInfo is one watch of one session.
type WatchInfo struct {
	Path    string
	Session int64
	Kind    WatchKind
}

// WatchList returns the watches that are set, by path, session and kind.
func (s *Server) WatchList() []WatchInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []WatchInfo
	for _, t := range []struct {
		table *watchTable
		kind  WatchKind
	}{{s.watches.data, WatchData}, {s.watches.child, WatchChildren}} {
		for path, ws := range t.table.byPath {
			for who, mode := range ws {
				info := WatchInfo{Path: path, Kind: t.kind}
				if c, ok := who.(*conn); ok {
					info.Session = c.session
				}
				switch mode {
				case persistent:
					info.Kind = WatchPersistent
				case recursive:
					info.Kind = WatchRecursive
				}
				out = append(out, info)
			}
		}
	}
	slices.SortFunc(out, func(a, b WatchInfo) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(out) // a persistent watch is in both tables
}
