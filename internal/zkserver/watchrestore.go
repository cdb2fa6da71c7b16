package zkserver

import "slices"

// watchLists is the body of setWatches and setWatches2.
type watchLists struct {
	relative              int64 // the last transaction that the client has seen
	data, exist, child    []string
	persistent, recursive []string // setWatches2 only
}

// decodeWatchLists decodes the body of a setWatches, or of a setWatches2.
func decodeWatchLists(d *Decoder, second bool) *watchLists {
	l := &watchLists{relative: d.Int64(), data: d.Texts(), exist: d.Texts(), child: d.Texts()}
	if second {
		l.persistent, l.recursive = d.Texts(), d.Texts()
	}
	return l
}

// paths returns all paths of the lists.
func (l *watchLists) paths() []string {
	return slices.Concat(l.data, l.exist, l.child, l.persistent, l.recursive)
}

// restore re-establishes the watches of a client that reconnected, and fires those
// whose node has changed since the last transaction that the client has seen. These events are
// not subject to access control in the real server. For persistent watches nothing is made up: what
// they missed is lost.
func (w *watches) restore(t *tree, l *watchLists, who watcher) {
	for _, p := range l.data {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(EventDeleted, p, nil)
		case n.stat.mzxid > l.relative:
			who.notify(EventDataChanged, p, nil)
		default:
			w.data.add(p, who, oneShot)
		}
	}
	for _, p := range l.exist {
		if t.nodes[p] != nil {
			who.notify(EventCreated, p, nil)
		} else {
			w.data.add(p, who, oneShot)
		}
	}
	for _, p := range l.child {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(EventDeleted, p, nil)
		case n.stat.pzxid > l.relative:
			who.notify(EventChildrenChanged, p, nil)
		default:
			w.child.add(p, who, oneShot)
		}
	}
	for _, p := range l.persistent {
		w.keep(p, who, persistent)
	}
	for _, p := range l.recursive {
		w.keep(p, who, recursive)
	}
}
