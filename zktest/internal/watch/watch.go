package watch

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Watches are the two tables of the server: data watches, which also serve exists,
// and child watches. A persistent watch is in both.
type Watches struct {
	release     wire.Release
	data, child *watchTable
	fired       *firings // by both
}

// New returns the watches of a server of a release.
func New(r wire.Release) *Watches {
	f := &firings{}
	return &Watches{release: r, data: newWatchTable(f, r.SeveralModes()), child: newWatchTable(f, r.SeveralModes()), fired: f}
}

// firings count, by kind of event, how many watchers each event concerned.
type firings [wire.EventChildrenChanged + 1]wire.Summary

func (f *firings) of(t wire.EventType) *wire.Summary { return &f[t] }

// Firings returns how many watchers each event of a kind concerned.
func (w *Watches) Firings(t wire.EventType) *wire.Summary { return w.fired.of(t) }

// ResetFirings forgets them.
func (w *Watches) ResetFirings() { *w.fired = firings{} }

// Created tells of a node that was made. The parent of a top-level node is "/".
func (w *Watches) Created(path, parent string, acl, parentACL []wire.ACL, zxid int64) {
	w.data.trigger(Event{wire.EventCreated, path, acl, zxid}, nil)
	w.child.trigger(Event{wire.EventChildrenChanged, parent, parentACL, zxid}, nil)
}

// Deleted tells each watcher of the node once, even if it watched data and children.
func (w *Watches) Deleted(path, parent string, acl, parentACL []wire.ACL, zxid int64) {
	gone := Event{wire.EventDeleted, path, acl, zxid}
	told := w.data.trigger(gone, nil)
	w.child.trigger(gone, told)
	w.child.trigger(Event{wire.EventChildrenChanged, parent, parentACL, zxid}, nil)
}

// Changed tells of new data.
func (w *Watches) Changed(path string, acl []wire.ACL, zxid int64) {
	w.data.trigger(Event{wire.EventDataChanged, path, acl, zxid}, nil)
}

// keep adds a watch that outlives its events. Since 3.9 a recursive one, which hears of the children themselves, is on data only.
func (w *Watches) keep(path string, who Watcher, mode watchMode) {
	w.data.add(path, who, mode)
	if mode != recursive || !w.release.SeveralModes() {
		w.child.add(path, who, mode)
	}
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

// The kinds of watches that checkWatches and removeWatches speak of, the last two since 3.9.
const (
	WatchesOnChildren int32 = 1
	WatchesOnData     int32 = 2
	WatchesOfAnyKind  int32 = 3
	persistentWatches int32 = 4
	recursiveWatches  int32 = 5
)

// kind returns the tables that a kind of watches is kept in, and in which modes; no tables for an unknown one. Before 3.9 a
// kind names a table, and whatever is there.
func (w *Watches) kind(k int32) ([]*watchTable, watchMode) {
	mode := anyMode
	if w.release.SeveralModes() {
		mode = oneShot
	}
	switch {
	case k == WatchesOnChildren:
		return []*watchTable{w.child}, mode
	case k == WatchesOnData:
		return []*watchTable{w.data}, mode
	case k == WatchesOfAnyKind:
		return []*watchTable{w.child, w.data}, anyMode
	case k == persistentWatches && w.release.SeveralModes():
		return []*watchTable{w.child, w.data}, persistent
	case k == recursiveWatches && w.release.SeveralModes():
		return []*watchTable{w.data}, recursive
	}
	return nil, 0
}

// Check answers checkWatches.
func (w *Watches) Check(path string, kind int32, who Watcher) wire.Code {
	tables, modes := w.kind(kind)
	if tables == nil {
		return wire.CodeMarshalling
	}
	code := wire.CodeNoWatcher
	for _, t := range tables {
		if w.release.ChecksOwnWatches() {
			if t.byPath[path][who]&modes != 0 {
				code = wire.CodeOK
			}
			continue
		}
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

// nowhere reports whether a request is about a watch on no path, and the client has one. The real server lets it have
// one, and stumbles over it when it looks for it.
func (w *Watches) nowhere(path string, who Watcher) bool {
	if path != wire.NullName {
		return false
	}
	_, found := w.data.byPath[path][who]
	return found
}

// mistaken reports whether a watch to add is on no path and the client has one that stays on the empty path. They have
// the same hash in the real server, which stumbles when it compares them.
func (w *Watches) mistaken(path string, who Watcher, mode watchMode) bool {
	if path != wire.NullName {
		return false
	}
	stays := func(t *watchTable) bool { return t.byPath[""][who]&^oneShot != 0 }
	return stays(w.data) || mode == persistent && stays(w.child)
}

// Remove answers removeWatches. A persistent watch can be removed by half.
func (w *Watches) Remove(path string, kind int32, who Watcher) wire.Code {
	tables, modes := w.kind(kind)
	if tables == nil || w.nowhere(path, who) {
		return wire.CodeMarshalling
	}
	code := wire.CodeNoWatcher
	for _, t := range tables {
		if t.remove(path, who, modes) {
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
