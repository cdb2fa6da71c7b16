package zkconn

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// A recursive watch is one watch on the server for a node and everything below it, and it stays. The client library knows no
// such watches; here its requests are sent, and its events told. Servers have them since 3.6.
//
// Servers up to 3.8 have one watch of a session at a path, whose kind is that of the newest request (since 3.9 they keep both). So a
// read that sets an ordinary watch at exactly the path of a recursive one would end that, silently. Two rules keep both:
//
//   - While the server holds a recursive watch, our reads of its path set no watch. The events of the recursive watch serve the
//     subscribers of ordinary ones, too.
//   - Where a request must set ordinary watches, whoever watches the tree is told Disconnected, and sets the watch again.
//
// What is sent is decided when it is written (sentRequest.turn), so the decisions have the order of the wire.

// watchedTree is a path whose tree is watched.
type watchedTree struct {
	asked bool // the request was written
	held  bool // and answered: the server holds the watch
	subs  map[*TreeWatch]struct{}
}

// TreeWatch is one subscription to a tree.
type TreeWatch struct {
	e    *Epoch
	path string
	tell func(path string, what Event)
}

// WatchTree subscribes to the node at path, which need not exist, and to all nodes below it. tell gets the path of
// each node that was created, changed or deleted since, in wire order, from the goroutine that reads the
// connection, and must not block. It gets [Disconnected] once, with the path of the tree, when the server does not hold the
// watch any more. After that it gets nothing.
//
// The call blocks until the server has answered, ctx ends, or the epoch is over. It is sent once. Before 3.6 the servers
// refuse it (Unimplemented), once; then it fails so without a request.
//
// A server does not tell of a node that the session may not read.
func (e *Epoch) WatchTree(ctx context.Context, path string, tell func(path string, what Event)) (*TreeWatch, error) {
	w := &TreeWatch{e, path, tell}
	h := &e.hub
	t := h.subscribeTree(w)
	const recursive = 1
	_, err := start(e, request[struct{}]{op: opAddWatch, turn: func() ([]byte, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.trees[path] != t {
			return nil, false // the connection of the subscription is gone
		}
		t.asked = true
		return jute.AppendInt32(jute.AppendText(nil, path), recursive), true
	}, decode: func(*jute.Decoder) (struct{}, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		t.held = true
		return struct{}{}, nil
	}}).Wait(ctx, e)
	switch {
	case Unimplemented(err):
		h.refusedTree(w, t)
		return nil, err
	case err != nil:
		w.Stop()
		return nil, err
	}
	return w, nil
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

// Stop ends the subscription. The last one of a path costs a request, for whose answer nobody waits: the server forgets the watch.
func (w *TreeWatch) Stop() {
	h := &w.e.hub
	h.mu.Lock()
	t := h.trees[w.path]
	last := false
	if t != nil {
		_, subscribed := t.subs[w]
		delete(t.subs, w)
		last = subscribed && len(t.subs) == 0
	}
	if last && !t.asked {
		delete(h.trees, w.path)
		last = false
	}
	h.mu.Unlock()
	if last {
		w.e.removeWatches(w.path, anyWatches, func() bool { return h.forgetTree(w.path, t) })
	}
}

// refusedTree ends a subscription whose request was refused. If there is no other, there is nothing that the server could forget. If
// the request was sent, reads of the path behind it have set no watch, as that was to serve them (see covered), so they are told
// Disconnected. If it was not sent, ordinary watches of the path are not concerned.
func (h *hub) refusedTree(w *TreeWatch, t *watchedTree) {
	h.mu.Lock()
	delete(t.subs, w)
	nothing, asked := len(t.subs) == 0 && !t.held, t.asked
	if nothing && !asked && h.trees[w.path] == t {
		delete(h.trees, w.path)
	}
	h.mu.Unlock()
	if nothing && asked {
		h.forgetTree(w.path, t)
	}
}

// The kinds of watches that removeWatches knows.
const (
	childWatches = 1
	dataWatches  = 2
	anyWatches   = 3
)

// forgetTree reports whether the server may forget its watch of a tree: nobody has subscribed meanwhile. The
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

// covered reports whether the server holds a recursive watch at exactly this path.
func (h *hub) covered(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trees[path]
	return t != nil && t.asked
}

// replacing is called before a request that sets ordinary watches at these paths.
func (h *hub) replacing(paths ...string) {
	for _, path := range paths {
		h.mu.Lock()
		t := h.trees[path]
		if t == nil || !t.asked {
			h.mu.Unlock()
			continue
		}
		delete(h.trees, path)
		h.mu.Unlock()
		h.endTree(path, t)
		h.fire(path, firing{childWatch, Disconnected}) // it may have been served by the events of the tree
	}
}

// endTree tells those who watch a tree that the server does not hold that watch any more.
func (h *hub) endTree(path string, t *watchedTree) {
	h.mu.Lock()
	told := slices.Collect(maps.Keys(t.subs))
	h.mu.Unlock()
	for _, w := range told {
		w.tell(path, Disconnected)
	}
}

// fireTrees tells of an event at path those who watch a tree that path is in. It also serves
// those who watch only the children of the top of such a tree, whom the server does not tell.
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

// Unwatch is [Watch.Stop], and has the server forget the watch if nobody else waits for its event. That costs a
// request, for whose answer nobody waits, unless the event has come.
func (e *Epoch) Unwatch(w *Watch) {
	waiting := w.Waiting()
	w.Stop()
	if !waiting {
		return
	}
	kinds, number := []watchKind{dataWatch, absenceWatch}, int32(dataWatches)
	if w.key.kind == childWatch {
		kinds, number = []watchKind{childWatch}, childWatches
	}
	e.removeWatches(w.key.path, number, func() bool { return e.hub.forget(w.key.path, kinds) })
}

// forget reports whether the server may forget its ordinary watches of these kinds: nobody waits for their events.
func (h *hub) forget(path string, kinds []watchKind) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.trees[path]; t != nil && t.asked {
		return false
	}
	for _, k := range kinds {
		if n := h.nodes[watchKey{path, k}]; n != nil && len(n.subs) > 0 {
			return false
		}
	}
	// An answer that says that such a watch is set may be on its way. It speaks of the nodes that are forgotten here: see armed.
	for _, k := range kinds {
		delete(h.nodes, watchKey{path, k})
	}
	return true
}

// removeWatches has the server forget watches, if needed says so when the request is written.
func (e *Epoch) removeWatches(path string, kind int32, needed func() bool) {
	wire := e.current()
	if wire == nil {
		return // all watches have gone with the connection
	}
	if e.client.unknown.has(opRemoveWatches) {
		return // they stay until their events, and wake nobody
	}
	body := jute.AppendInt32(jute.AppendText(nil, path), kind)
	wire.send(&sentRequest{
		op: opRemoveWatches, turn: func() ([]byte, bool) { return body, needed() },
		end: func([]byte, error) {}, // a refusal says that there is no such watch; for the other see unknownOps
	}, nil)
}
