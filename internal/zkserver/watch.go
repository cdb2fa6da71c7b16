package zkserver

import "github.com/go-menagerie/menagerie/internal/zkserver/wire"

// watches are the two tables of the server: data watches, which also serve exists,
// and child watches. A persistent watch is in both.
type watches struct {
	data, child *watchTable
	fired       *firings // by both
}

func newWatches() *watches {
	f := &firings{}
	return &watches{data: newWatchTable(f), child: newWatchTable(f), fired: f}
}

// firings count, by kind of event, how many watchers each event concerned.
type firings [wire.EventChildrenChanged + 1]summary

func (f *firings) of(t wire.EventType) *summary { return &f[t] }

func (w *watches) created(path, parent string, acl, parentACL []wire.ACL) {
	w.data.trigger(wire.EventCreated, path, acl, nil)
	w.child.trigger(wire.EventChildrenChanged, parent, parentACL, nil)
}

// deleted tells each watcher of the node once, even if it watched data and children.
func (w *watches) deleted(path, parent string, acl, parentACL []wire.ACL) {
	told := w.data.trigger(wire.EventDeleted, path, acl, nil)
	w.child.trigger(wire.EventDeleted, path, acl, told)
	w.child.trigger(wire.EventChildrenChanged, parent, parentACL, nil)
}

func (w *watches) changed(path string, acl []wire.ACL) {
	w.data.trigger(wire.EventDataChanged, path, acl, nil)
}

// keep adds a watch that outlives its events.
func (w *watches) keep(path string, who watcher, mode watchMode) {
	w.data.add(path, who, mode)
	w.child.add(path, who, mode)
}

func (w *watches) drop(who watcher) {
	w.data.drop(who)
	w.child.drop(who)
}

func (w *watches) count() int { return w.data.n + w.child.n }

// on returns the number of watches on a path.
func (w *watches) on(path string) int {
	return len(w.data.byPath[path]) + len(w.child.byPath[path])
}

// of returns the number of watches of a watcher.
func (w *watches) of(who watcher) int {
	return len(w.data.byWatcher[who]) + len(w.child.byWatcher[who])
}

// The kinds of watches that checkWatches and removeWatches speak of.
const (
	watchesOnChildren int32 = 1
	watchesOnData     int32 = 2
	watchesOfAnyKind  int32 = 3
)

// kind returns the tables that a kind of watches is kept in; none for an unknown one.
func (w *watches) kind(k int32) []*watchTable {
	switch k {
	case watchesOnChildren:
		return []*watchTable{w.child}
	case watchesOnData:
		return []*watchTable{w.data}
	case watchesOfAnyKind:
		return []*watchTable{w.child, w.data}
	}
	return nil
}

// check answers checkWatches.
func (w *watches) check(path string, kind int32) wire.Code {
	tables := w.kind(kind)
	if tables == nil {
		return wire.CodeMarshalling
	}
	code := wire.CodeNoWatcher
	for _, t := range tables {
		found, ok := t.watched(path)
		if !ok {
			return wire.CodeMarshalling
		}
		if found {
			code = wire.CodeOK
		}
	}
	return code
}

// nowhere tells whether a request is about a watch on no path, and the client has one. The real server lets it have
// one, and stumbles over it when it looks for it.
func (w *watches) nowhere(path string, who watcher) bool {
	if path != wire.NullName {
		return false
	}
	_, found := w.data.byPath[path][who]
	return found
}

// mistaken tells whether a watch to add is on no path and the client has one that stays on the empty path. They have
// the same hash in the real server, which stumbles when it compares them.
func (w *watches) mistaken(path string, who watcher, mode watchMode) bool {
	if path != wire.NullName {
		return false
	}
	return w.data.byPath[""][who] != oneShot || mode == persistent && w.child.byPath[""][who] != oneShot
}

// remove answers removeWatches. A persistent watch can be removed by half.
func (w *watches) remove(path string, kind int32, who watcher) wire.Code {
	tables := w.kind(kind)
	if tables == nil || w.nowhere(path, who) {
		return wire.CodeMarshalling
	}
	code := wire.CodeNoWatcher
	for _, t := range tables {
		if t.remove(path, who) {
			code = wire.CodeOK
		}
	}
	return code
}

// addWatch executes the request of that name. The node need not exist, and nobody asks whether the
// client may read it: access is checked when there is an event.
func (s *Server) addWatch(r *request, e *wire.Encoder) wire.Code {
	mode, ok := modeOnWire(r.call.Kind)
	if !ok || s.watches.nowhere(r.call.Path, r.conn) || s.watches.mistaken(r.call.Path, r.conn, mode) {
		return wire.CodeMarshalling
	}
	s.watches.keep(r.call.Path, r.conn, mode)
	e.Int32(0) // the body of the reply repeats the result
	return wire.CodeOK
}
