package zkserver

import "github.com/go-menagerie/menagerie/internal/zkserver/wire"

// restore re-establishes the watches of a client that reconnected, and fires those
// whose node has changed since the last transaction that the client has seen. These events are
// not subject to access control in the real server. For persistent watches nothing is made up: what
// they missed is lost.
func (w *watches) restore(t *tree, l *wire.WatchLists, who watcher) {
	for _, p := range l.Data {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(wire.EventDeleted, p, nil)
		case n.stat.mzxid > l.Relative:
			who.notify(wire.EventDataChanged, p, nil)
		default:
			w.data.add(p, who, oneShot)
		}
	}
	for _, p := range l.Exist {
		if t.nodes[p] != nil {
			who.notify(wire.EventCreated, p, nil)
		} else {
			w.data.add(p, who, oneShot)
		}
	}
	for _, p := range l.Child {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(wire.EventDeleted, p, nil)
		case n.stat.pzxid > l.Relative:
			who.notify(wire.EventChildrenChanged, p, nil)
		default:
			w.child.add(p, who, oneShot)
		}
	}
	for _, p := range l.Persistent {
		w.keep(p, who, persistent)
	}
	for _, p := range l.Recursive {
		w.keep(p, who, recursive)
	}
}
