package watch

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Restore re-establishes the watches of a client that reconnected, and fires those
// whose node has changed since the last transaction that the client has seen. These events are
// not subject to access control in the real server. For persistent watches nothing is made up: what
// they missed is lost. changed returns in which transactions the data and the children of a node were changed last.
func (w *Watches) Restore(changed func(path string) (data, children int64, ok bool), l *wire.WatchLists, who Watcher) {
	missed := func(t wire.EventType, path string) { who.Notify(Event{t, path, nil, wire.NoZxid}) }
	for _, p := range l.Data {
		switch at, _, ok := changed(p); {
		case !ok:
			missed(wire.EventDeleted, p)
		case at > l.Relative:
			missed(wire.EventDataChanged, p)
		default:
			w.data.add(p, who, oneShot)
		}
	}
	for _, p := range l.Exist {
		if _, _, ok := changed(p); ok {
			missed(wire.EventCreated, p)
		} else {
			w.data.add(p, who, oneShot)
		}
	}
	for _, p := range l.Child {
		switch _, at, ok := changed(p); {
		case !ok:
			missed(wire.EventDeleted, p)
		case at > l.Relative:
			missed(wire.EventChildrenChanged, p)
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
