package wire

import "slices"

// WatchLists is the body of setWatches and setWatches2.
type WatchLists struct {
	Relative              int64 // the last transaction that the client has seen
	Data, Exist, Child    []string
	Persistent, Recursive []string // setWatches2 only
}

// decodeWatchLists decodes the body of a setWatches, or of a setWatches2.
func decodeWatchLists(d *Decoder, second bool) *WatchLists {
	l := &WatchLists{Relative: d.Int64(), Data: d.Texts(), Exist: d.Texts(), Child: d.Texts()}
	if second {
		l.Persistent, l.Recursive = d.Texts(), d.Texts()
	}
	return l
}

// paths returns all paths of the lists.
func (l *WatchLists) paths() []string {
	return slices.Concat(l.Data, l.Exist, l.Child, l.Persistent, l.Recursive)
}
