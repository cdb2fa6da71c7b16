package zkserver

// watcher receives watch events; a connection is one. acl is that of the node in question: who may
// not read it is not told, and still loses the watch (the real server since 3.8.4, and Debian's
// 3.8.0).
type watcher interface {
	notify(t EventType, path string, acl []ACL)
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
func (w *watchTable) trigger(t EventType, path string, acl []ACL, skip map[watcher]struct{}) map[watcher]struct{} {
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
			who.notify(t, path, acl)
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

func (w *watches) created(path, parent string, acl, parentACL []ACL) {
	w.data.trigger(EventCreated, path, acl, nil)
	w.child.trigger(EventChildrenChanged, showParent(parent), parentACL, nil)
}

// deleted tells each watcher of the node once, even if it watched data and children.
func (w *watches) deleted(path, parent string, acl, parentACL []ACL) {
	told := w.data.trigger(EventDeleted, path, acl, nil)
	w.child.trigger(EventDeleted, path, acl, told)
	w.child.trigger(EventChildrenChanged, showParent(parent), parentACL, nil)
}

func (w *watches) changed(path string, acl []ACL) {
	w.data.trigger(EventDataChanged, path, acl, nil)
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
// whose node has changed since the last transaction that the client has seen. These events are
// not subject to access control in the real server.
func (w *watches) restore(t *tree, l *watchLists, who watcher) {
	for _, p := range l.data {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(EventDeleted, p, nil)
		case n.stat.mzxid > l.relative:
			who.notify(EventDataChanged, p, nil)
		default:
			w.data.add(p, who)
		}
	}
	for _, p := range l.exist {
		if t.nodes[p] != nil {
			who.notify(EventCreated, p, nil)
		} else {
			w.data.add(p, who)
		}
	}
	for _, p := range l.child {
		switch n := t.nodes[p]; {
		case n == nil:
			who.notify(EventDeleted, p, nil)
		case n.stat.pzxid > l.relative:
			who.notify(EventChildrenChanged, p, nil)
		default:
			w.child.add(p, who)
		}
	}
}
