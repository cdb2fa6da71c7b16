package zkconn

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Event is what a [Watch] reports, once.
type Event int

const (
	// Deleted means that the node was deleted while it was watched.
	Deleted Event = iota + 1
	// NotFound means that the node was not there when the server
	// was to watch it. What happened to it before is not known.
	NotFound
	// Changed means that the node's data or children changed.
	Changed
	// Disconnected means that the connection was lost: anything may
	// have happened to the node since. The subscriber must read again.
	Disconnected
	// Created means that the node was made. Only watches of absence and of trees get it.
	Created
)

// Watch is one subscription to one node. Its event comes once. The events of
// all watches of one connection come in the order of the server's history.
type Watch struct {
	hub  *hub
	key  watchKey
	tell func(Event)

	of         *watchedNode // nil after Stop
	prev, next *Watch       // of the same node; a list takes much less memory than a set
}

// Stop ends the subscription. It costs no request: the watch on the server, of which there is one for
// all subscriptions to a node, stays until the node changes. Unwatch removes that, too.
func (w *Watch) Stop() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if !w.waiting() {
		return
	}
	n := w.of
	n.remove(w)
	if !n.armed && n.first == nil {
		delete(w.hub.nodes, w.key)
	}
}

// Waiting reports whether the event is still to come. Two subscriptions to one node that
// are both waiting share one watch on the server, and will get the same event.
func (w *Watch) Waiting() bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.waiting()
}

// waiting is Waiting while mu is held.
func (w *Watch) waiting() bool { return w.of != nil && w.hub.nodes[w.key] == w.of }

// watchKey names a watch as the server does. A watch of a node that is not there is a data watch for the server.
// Here it has a kind of its own, because a data watch must report that the node is not there.
type watchKey struct {
	path string
	kind watchKind
}

type watchKind int

const (
	dataWatch watchKind = iota
	childWatch
	absenceWatch
)

// hub holds the watches of one connection at a time. The wire drives it, in the goroutine
// that reads, so that events come in wire order. So a subscriber's tell must not block.
//
// The client library's own watches are not used: it loses the order of events, and sets watches again after a reconnect
// in a way that races. Here the loss of a connection ends all its watches, and the subscribers read again.
//
// A recursive watch is one watch on the server for a node and everything below it, and it stays (since 3.6). Servers up to
// 3.8 have one watch of a session at a path, whose kind is that of the newest request. So a read that sets an ordinary
// watch at exactly the path of a recursive one would end that, silently. Two rules keep both:
//
//   - While the server holds a recursive watch, our reads of its path set no watch. The events of the recursive watch serve the
//     subscribers of ordinary ones, too.
//   - Where a request must set ordinary watches, the watchers of the tree get Disconnected, and set the watch again.
//
// What is sent is decided when it is written (sentRequest.turn), so the decisions have the order of the wire.
type hub struct {
	mu    sync.Mutex
	nodes map[watchKey]*watchedNode
	trees map[string]*watchedTree

	ending sync.Mutex // held while the watches are ended: see disconnected
}

// watchedNode is a node that is watched. After an event there is a new one for the same node.
type watchedNode struct {
	armed   bool     // the server was asked, on this connection, to watch the node for us
	sure    bool     // and has said that it does
	confirm []func() // called then
	first   *Watch
}

func (n *watchedNode) add(w *Watch) {
	if w.of, w.next = n, n.first; n.first != nil {
		n.first.prev = w
	}
	n.first = w
}

func (n *watchedNode) remove(w *Watch) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		n.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.of, w.prev, w.next = nil, nil, nil
}

// watchedTree is a path whose tree is watched.
type watchedTree struct {
	asked bool // the request was written
	held  bool // and answered: the server holds the watch
	subs  map[*TreeWatch]struct{}
}

// TreeWatch is one subscription to a tree.
type TreeWatch struct {
	hub    *hub
	path   string
	tell   func(path string, what Event)
	forget func(needed func() bool) // has the server forget the watch
}

// subscribe adds a subscription to a node. mu is held.
func (h *hub) subscribe(key watchKey, tell func(Event)) (*Watch, *watchedNode) {
	if h.nodes == nil {
		h.nodes = make(map[watchKey]*watchedNode)
	}
	n := h.nodes[key]
	if n == nil {
		n = &watchedNode{}
		h.nodes[key] = n
	}
	w := &Watch{hub: h, key: key, tell: tell}
	n.add(w)
	return w, n
}

// confirmed notes, in the goroutine that reads, that the server has acknowledged a request that set these watches, which
// were subscribed to before the request. If there is another watchedNode in the place of one by now, it is not concerned.
func (h *hub) confirmed(asked ...*watchedNode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range asked {
		n.armed, n.sure = true, true
		for _, sure := range n.confirm {
			sure() // under the lock, as in watchAll
		}
		n.confirm = nil
	}
}

const (
	eventCreated  = 1
	eventDeleted  = 2
	eventData     = 3
	eventChildren = 4
)

// event reports to the subscribers of path what the server said of it. Data watches and those of absence are one watch
// for the server, so each event uses both up.
func (h *hub) event(kind int32, path string) {
	switch kind {
	case eventCreated:
		h.fire(path, firing{absenceWatch, Created}, firing{dataWatch, Disconnected}) // what was watched is gone, or was never there
		h.fireTrees(path, Created)
	case eventDeleted:
		h.fire(path, firing{dataWatch, Deleted}, firing{absenceWatch, Deleted}, firing{childWatch, Deleted})
		h.fireTrees(path, Deleted)
	case eventData:
		h.fire(path, firing{dataWatch, Changed}, firing{absenceWatch, Changed})
		h.fireTrees(path, Changed)
	case eventChildren:
		h.fire(path, firing{childWatch, Changed})
	}
}

// firing is an event for the watches of one kind.
type firing struct {
	kind watchKind
	what Event
}

// fire reports events to the subscribers of a node, which use the watches up. If the server has not yet
// confirmed a watch, a deletion may have come before the request for the watch: it is reported as NotFound.
// All the watches are taken before anything is reported: a subscriber may subscribe again at once.
func (h *hub) fire(path string, all ...firing) {
	used := make([]*watchedNode, len(all))
	h.mu.Lock()
	for i, x := range all {
		key := watchKey{path, x.kind}
		n := h.nodes[key]
		delete(h.nodes, key)
		if used[i] = n; n != nil && x.what == Deleted && !n.sure {
			all[i].what = NotFound
		}
		if n != nil {
			n.confirm = nil // the watch is used up
		}
	}
	h.mu.Unlock()
	for i, n := range used {
		if n == nil {
			continue
		}
		for w := n.first; w != nil; w = w.next { // which nothing changes any more: no watch of n is waiting
			w.tell(all[i].what)
		}
	}
}

// disconnected ends every watch of the connection, with the event Disconnected. When it returns all subscribers have it,
// also those that another goroutine was notifying.
func (h *hub) disconnected() {
	h.ending.Lock()
	defer h.ending.Unlock()
	h.mu.Lock()
	keys := slices.Collect(maps.Keys(h.nodes))
	trees := h.trees
	h.trees = nil
	h.mu.Unlock()
	for _, k := range keys {
		h.fire(k.path, firing{k.kind, Disconnected})
	}
	for path, t := range trees {
		h.endTree(path, t)
	}
}

// forget reports whether the server may forget its ordinary watches of these kinds: nothing waits for their events.
func (h *hub) forget(path string, kinds []watchKind) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.covers(path) {
		return false
	}
	for _, k := range kinds {
		if n := h.nodes[watchKey{path, k}]; n != nil && n.first != nil {
			return false
		}
	}
	// An answer that says that such a watch is set may be on its way. It speaks of the nodes that are forgotten here: see confirmed.
	for _, k := range kinds {
		delete(h.nodes, watchKey{path, k})
	}
	return true
}

// subscribeTree adds a subscription to a tree.
func (h *hub) subscribeTree(w *TreeWatch) *watchedTree {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trees == nil {
		h.trees = make(map[string]*watchedTree)
	}
	t := h.trees[w.path]
	if t == nil {
		t = &watchedTree{subs: make(map[*TreeWatch]struct{})}
		h.trees[w.path] = t
	}
	t.subs[w] = struct{}{}
	return t
}

// Stop ends the subscription. The last one of a path costs a request, for whose answer it does not wait: the server forgets the watch.
func (w *TreeWatch) Stop() {
	if t, last := w.leave(); last {
		w.forget(func() bool { return w.hub.forgetTree(w.path, t) })
	}
}

// refused ends a subscription whose request was refused: there is nothing that the server could forget. But reads of the
// path behind the request have set no watch, as the tree was to serve them (see covered), so they get Disconnected.
func (w *TreeWatch) refused() {
	if t, last := w.leave(); last && !t.held {
		w.hub.forgetTree(w.path, t)
	}
}

// leave ends the subscription. It reports whether it was the last one of a tree that the server was asked to watch.
func (w *TreeWatch) leave() (t *watchedTree, last bool) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if t = h.trees[w.path]; t == nil {
		return nil, false
	}
	_, subscribed := t.subs[w]
	delete(t.subs, w)
	last = subscribed && len(t.subs) == 0
	if last && !t.asked {
		delete(h.trees, w.path)
	}
	return t, last && t.asked
}

// forgetTree reports whether the server may forget its watch of a tree: nothing has subscribed meanwhile. The
// ordinary watches of the path go with it.
func (h *hub) forgetTree(path string, t *watchedTree) bool {
	h.mu.Lock()
	if h.trees[path] != t || len(t.subs) > 0 {
		h.mu.Unlock()
		return false
	}
	delete(h.trees, path)
	h.mu.Unlock()
	h.fire(path, firing{dataWatch, Disconnected}, firing{childWatch, Disconnected}, firing{absenceWatch, Disconnected})
	return true
}

// covers reports whether the server holds a recursive watch at exactly this path. mu is held.
func (h *hub) covers(path string) bool {
	t := h.trees[path]
	return t != nil && t.asked
}

// replacing is called before a request that sets ordinary watches at these paths.
func (h *hub) replacing(paths ...string) {
	for _, path := range paths {
		h.mu.Lock()
		t, covered := h.trees[path], h.covers(path)
		if covered {
			delete(h.trees, path)
		}
		h.mu.Unlock()
		if covered {
			h.endTree(path, t)
			h.fire(path, firing{childWatch, Disconnected}) // it may have been served by the events of the tree
		}
	}
}

// endTree reports to the watchers of a tree that the server does not hold that watch any more.
func (h *hub) endTree(path string, t *watchedTree) {
	h.mu.Lock()
	told := slices.Collect(maps.Keys(t.subs))
	h.mu.Unlock()
	for _, w := range told {
		w.tell(path, Disconnected)
	}
}

// fireTrees reports an event at path to the watchers of each tree that path is in. It also serves
// watches of only the children of the top of such a tree, for which the server sends no event.
func (h *hub) fireTrees(path string, what Event) {
	h.mu.Lock()
	if len(h.trees) == 0 {
		h.mu.Unlock()
		return
	}
	var told []*TreeWatch
	for up := path; ; up = parentOf(up) {
		if t := h.trees[up]; t != nil {
			told = slices.AppendSeq(told, maps.Keys(t.subs))
		}
		if up == "/" {
			break
		}
	}
	above := parentOf(path)
	children := what != Changed && h.trees[above] != nil
	h.mu.Unlock()
	for _, w := range told {
		w.tell(path, what)
	}
	if children {
		h.fire(above, firing{childWatch, Changed})
	}
}

// parentOf goes by the text alone, and always comes to "/".
func parentOf(path string) string {
	if at := strings.LastIndexByte(path, '/'); at > 0 {
		return path[:at]
	}
	return "/"
}
