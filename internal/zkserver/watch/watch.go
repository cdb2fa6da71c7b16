package watch

import "github.com/go-menagerie/menagerie/internal/zkserver/wire"

// Watches are the two tables of the server: data watches, which also serve exists,
// and child watches. A persistent watch is in both.
type Watches struct {
	data, child *watchTable
	fired       *firings // by both
}

func New() *Watches {
	f := &firings{}
	return &Watches{data: newWatchTable(f), child: newWatchTable(f), fired: f}
}

// firings count, by kind of event, how many watchers each event concerned.
type firings [wire.EventChildrenChanged + 1]wire.Summary

func (f *firings) of(t wire.EventType) *wire.Summary { return &f[t] }

// Firings returns how many watchers each event of a kind concerned.
func (w *Watches) Firings(t wire.EventType) *wire.Summary { return w.fired.of(t) }

// ResetFirings forgets them.
func (w *Watches) ResetFirings() { *w.fired = firings{} }

// Created tells of a node that was made. The parent of a top-level node is "/".
func (w *Watches) Created(path, parent string, acl, parentACL []wire.ACL) {
	w.data.trigger(wire.EventCreated, path, acl, nil)
	w.child.trigger(wire.EventChildrenChanged, parent, parentACL, nil)
}

// Deleted tells each watcher of the node once, even if it watched data and children.
func (w *Watches) Deleted(path, parent string, acl, parentACL []wire.ACL) {
	told := w.data.trigger(wire.EventDeleted, path, acl, nil)
	w.child.trigger(wire.EventDeleted, path, acl, told)
	w.child.trigger(wire.EventChildrenChanged, parent, parentACL, nil)
}

// Changed tells of new data.
func (w *Watches) Changed(path string, acl []wire.ACL) {
	w.data.trigger(wire.EventDataChanged, path, acl, nil)
}

// keep adds a watch that outlives its events.
func (w *Watches) keep(path string, who Watcher, mode watchMode) {
	w.data.add(path, who, mode)
	w.child.add(path, who, mode)
}

// Drop forgets a watcher.
func (w *Watches) Drop(who Watcher) {
	w.data.drop(who)
	w.child.drop(who)
}

// Count returns the number of watches.
func (w *Watches) Count() int { return w.data.n + w.child.n }

// On returns the number of watches on a path.
func (w *Watches) On(path string) int {
	return len(w.data.byPath[path]) + len(w.child.byPath[path])
}

// Of returns the number of watches of a watcher.
func (w *Watches) Of(who Watcher) int {
	return len(w.data.byWatcher[who]) + len(w.child.byWatcher[who])
}

// The kinds of watches that checkWatches and removeWatches speak of.
const (
	WatchesOnChildren int32 = 1
	WatchesOnData     int32 = 2
	WatchesOfAnyKind  int32 = 3
)

// kind returns the tables that a kind of watches is kept in; none for an unknown one.
func (w *Watches) kind(k int32) []*watchTable {
	switch k {
	case WatchesOnChildren:
		return []*watchTable{w.child}
	case WatchesOnData:
		return []*watchTable{w.data}
	case WatchesOfAnyKind:
		return []*watchTable{w.child, w.data}
	}
	return nil
}

// Check answers checkWatches.
func (w *Watches) Check(path string, kind int32) wire.Code {
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
func (w *Watches) nowhere(path string, who Watcher) bool {
	if path != wire.NullName {
		return false
	}
	_, found := w.data.byPath[path][who]
	return found
}

// mistaken tells whether a watch to add is on no path and the client has one that stays on the empty path. They have
// the same hash in the real server, which stumbles when it compares them.
func (w *Watches) mistaken(path string, who Watcher, mode watchMode) bool {
	if path != wire.NullName {
		return false
	}
	return w.data.byPath[""][who] != oneShot || mode == persistent && w.child.byPath[""][who] != oneShot
}

// Remove answers removeWatches. A persistent watch can be removed by half.
func (w *Watches) Remove(path string, kind int32, who Watcher) wire.Code {
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

// Add answers addWatch. The node need not exist, and nobody asks whether the
// client may read it: access is checked when there is an event.
func (w *Watches) Add(path string, kind int32, who Watcher) wire.Code {
	mode, ok := modeOnWire(kind)
	if !ok || w.nowhere(path, who) || w.mistaken(path, who, mode) {
		return wire.CodeMarshalling
	}
	w.keep(path, who, mode)
	return wire.CodeOK
}

// OnData sets a watch that goes with the next change of a node, also with its creation.
func (w *Watches) OnData(path string, who Watcher) { w.data.add(path, who, oneShot) }

// OnChildren sets a watch that goes with the next change of a node's children.
func (w *Watches) OnChildren(path string, who Watcher) { w.child.add(path, who, oneShot) }
