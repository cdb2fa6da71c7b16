package zkserver

// watcher receives watch events; a connection is one.
type watcher interface {
	notify(t EventType, path string)
}

// watchTable keeps one-shot watches, by path and by watcher. A watcher is at most once
// on a path, however often it asked.
type watchTable struct {
	byPath    map[string]map[watcher]struct{}
	byWatcher map[watcher]map[string]struct{}
	n         int
}

func newWatchTable() *watchTable {
	return &watchTable{byPath: map[string]map[watcher]struct{}{}, byWatcher: map[watcher]map[string]struct{}{}}
}

func (w *watchTable) add(path string, who watcher) {
	ws := w.byPath[path]
	if ws == nil {
		ws = map[watcher]struct{}{}
		w.byPath[path] = ws
	}
	if _, dup := ws[who]; dup {
		return
	}
	ws[who] = struct{}{}
	ps := w.byWatcher[who]
	if ps == nil {
		ps = map[string]struct{}{}
		w.byWatcher[who] = ps
	}
	ps[path] = struct{}{}
	w.n++
}

// trigger fires and removes the watches on a path. Watchers in skip are removed
// but not told again. It returns who was removed.
func (w *watchTable) trigger(t EventType, path string, skip map[watcher]struct{}) map[watcher]struct{} {
	ws := w.byPath[path]
	if len(ws) == 0 {
		return nil
	}
	delete(w.byPath, path)
	w.n -= len(ws)
	for who := range ws {
		ps := w.byWatcher[who]
		delete(ps, path)
		if len(ps) == 0 {
			delete(w.byWatcher, who)
		}
		if _, told := skip[who]; !told {
			who.notify(t, path)
		}
	}
	return ws
}

// drop forgets all watches of a watcher.
func (w *watchTable) drop(who watcher) {
	for path := range w.byWatcher[who] {
		ws := w.byPath[path]
		delete(ws, who)
		if len(ws) == 0 {
			delete(w.byPath, path)
		}
		w.n--
	}
	delete(w.byWatcher, who)
}

// watches are the two tables of the server: data watches, which also serve exists,
// and child watches.
type watches struct {
	data, child *watchTable
}

func newWatches() *watches {
	return &watches{data: newWatchTable(), child: newWatchTable()}
}

func (w *watches) created(path, parent string) {
	w.data.trigger(EventCreated, path, nil)
	w.child.trigger(EventChildrenChanged, showParent(parent), nil)
}

// deleted tells each watcher of the node once, even if it watched data and children.
func (w *watches) deleted(path, parent string) {
	told := w.data.trigger(EventDeleted, path, nil)
	w.child.trigger(EventDeleted, path, told)
	w.child.trigger(EventChildrenChanged, showParent(parent), nil)
}

func (w *watches) changed(path string) {
	w.data.trigger(EventDataChanged, path, nil)
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

// restore re-establishes the watches of a client that reconnected, and fires those
// whose node has changed since the last transaction that the client has seen.
func (w *watches) restore(t *tree, l *watchLists, who watcher) {
	for _, p := range l.data {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(EventDeleted, p)
		case n.stat.mzxid > l.relative:
			who.notify(EventDataChanged, p)
		default:
			w.data.add(p, who)
		}
	}
	for _, p := range l.exist {
		if t.nodes[p] != nil {
			who.notify(EventCreated, p)
		} else {
			w.data.add(p, who)
		}
	}
	for _, p := range l.child {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(EventDeleted, p)
		case n.stat.pzxid > l.relative:
			who.notify(EventChildrenChanged, p)
		default:
			w.child.add(p, who)
		}
	}
}
