package zkconn

import "sync"

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
	// Created means that the node was made. Only those hear of it who
	// look for a node that is not there, or who watch a tree.
	Created
)

// Watch is one subscription to one node. Its event comes once. The events of
// all watches of one connection come in the order of the server's history.
type Watch struct {
	hub  *hub
	key  watchKey
	tell func(Event)
}

// Stop ends the subscription. It costs no request: the watch on the server, of which there is one for
// all subscriptions to a node, stays until the node changes. [Epoch.Unwatch] removes that, too.
func (w *Watch) Stop() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if n := w.hub.nodes[w.key]; n != nil {
		delete(n.subs, w)
		if !n.armed && len(n.subs) == 0 {
			delete(w.hub.nodes, w.key)
		}
	}
}

// Waiting reports whether the event is still to come. Two subscriptions to one node that
// are both waiting share one watch on the server, and will get the same event.
func (w *Watch) Waiting() bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	n := w.hub.nodes[w.key]
	if n == nil {
		return false
	}
	_, waiting := n.subs[w]
	return waiting
}

// watchKey names a watch as the server does: a data watch and a child watch of one path are two watches. A watch of a
// node that is not there is a data watch for the server. Here it has a kind of its own, because who watches
// a node must be told if that is not there, and such a watch does not tell that.
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
// that reads, so that events are told in wire order. So a subscriber's tell must not block.
//
// The client library's own watches are not used. The library tells each through a channel of its own, which
// loses the order. It sets them again after a reconnect in a way that races with its read loop, and only logs
// it when that fails. Here the loss of a connection ends all its watches, and the subscribers read again.
type hub struct {
	mu    sync.Mutex
	nodes map[watchKey]*watchedNode
	trees map[string]*watchedTree // see watchtree.go

	ending sync.Mutex // held while the watches are ended: see disconnected
}

// watchedNode is a node that is watched. After an event there is a new one for the same node.
type watchedNode struct {
	armed bool // the server was asked, on this connection, to watch the node for us
	sure  bool // and has said that it does
	subs  map[*Watch]struct{}
}

// node returns what is known of a node. mu is held.
func (h *hub) node(key watchKey) *watchedNode {
	if h.nodes == nil {
		h.nodes = make(map[watchKey]*watchedNode)
	}
	n := h.nodes[key]
	if n == nil {
		n = &watchedNode{subs: make(map[*Watch]struct{})}
		h.nodes[key] = n
	}
	return n
}

// subscribe adds a subscription to a node. mu is held.
func (h *hub) subscribe(key watchKey, tell func(Event)) (*Watch, *watchedNode) {
	w, n := &Watch{hub: h, key: key, tell: tell}, h.node(key)
	n.subs[w] = struct{}{}
	return w, n
}

// armed notes, in the goroutine that reads, that the server has acknowledged a read that set a watch. n is what was
// subscribed to before the read. If something else is in its place by now, that is another watch: n has had an event, or
// was removed after the read, so the server may not hold the watch any more.
func (h *hub) armed(n *watchedNode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n.armed, n.sure = true, true
}

// confirmed notes the answer to a request for watches; the nodes were marked as armed when it was sent. If a
// node has had an event since, another watchedNode is in its place by now: the answer says nothing of that one.
func (h *hub) confirmed(asked []*watchedNode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range asked {
		n.sure = true
	}
}

const (
	eventCreated  = 1
	eventDeleted  = 2
	eventData     = 3
	eventChildren = 4
)

// event tells the subscribers of path what the server said of it. Data watches and those of absence are one watch
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

// fire tells the subscribers of a node events, which use the watches up. If the server has not yet
// confirmed a watch, a deletion may have come before the request for the watch: it is told as NotFound.
//
// All the watches are taken before anybody is told. Who is told may subscribe anew at once, in another goroutine, and what
// happened before that subscription is not for it.
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
	}
	h.mu.Unlock()
	for i, n := range used {
		if n == nil {
			continue
		}
		for s := range n.subs {
			s.tell(all[i].what)
		}
	}
}

// disconnected ends every watch of the connection, with the event Disconnected. When it returns all subscribers have been
// told, also those whom another goroutine was telling: whoever closes the old connection may be slower than the new one.
func (h *hub) disconnected() {
	h.ending.Lock()
	defer h.ending.Unlock()
	h.mu.Lock()
	keys := make([]watchKey, 0, len(h.nodes))
	for k := range h.nodes {
		keys = append(keys, k)
	}
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

// WatchAll subscribes to the nodes at paths. With one request it sets the watches that the server
// does not hold yet, in the order given. It does not wait for the answer. tell gets the path; the
// rest is as with [Epoch.Watch]. Without a connection tell gets [Disconnected] for every path.
//
// sure, if not nil, is called in wire order, too, as soon as the server is known to watch the first
// path; before WatchAll returns, if that was known already. What is told of other nodes before may
// come from older watches of theirs. Then it does not say whether the first node was still there.
func (e *Epoch) WatchAll(paths []string, tell func(path string, what Event), sure func()) []*Watch {
	return e.watchAll(dataWatch, paths, tell, sure)
}

// WatchNames subscribes to the set of children of the node at path, and does not list them. The rest is as with [Epoch.WatchAll].
func (e *Epoch) WatchNames(path string, tell func(path string, what Event)) *Watch {
	return e.watchAll(childWatch, []string{path}, tell, nil)[0]
}

func (e *Epoch) watchAll(kind watchKind, paths []string, tell func(path string, what Event), sure func()) []*Watch {
	// The connection is looked up before anything is subscribed to. If it were a later
	// connection than that of the subscriptions, the answer would say nothing of them.
	wire := e.current()
	watches := make([]*Watch, len(paths))
	var unarmed []string
	var asked []*watchedNode
	known := false
	e.hub.mu.Lock()
	for i, p := range paths {
		w, n := e.hub.subscribe(watchKey{p, kind}, func(what Event) { tell(p, what) })
		watches[i] = w
		known = known || i == 0 && n.sure
		if !n.armed {
			// The node counts as armed from here on, since nobody needs to wait for the answer:
			// if the request is not answered, the connection is cut, and all its watches end.
			n.armed = true
			unarmed, asked = append(unarmed, p), append(asked, n)
		}
	}
	if known && sure != nil {
		sure() // under the lock, so that no event overtakes it
	}
	e.hub.mu.Unlock()
	if len(unarmed) == 0 {
		return watches
	}
	if wire == nil {
		e.hub.disconnected()
		return watches
	}
	wire.send(&sentRequest{op: opSetWatches, turn: func() ([]byte, bool) {
		e.hub.replacing(unarmed...)
		return setWatchesBody(kind, unarmed), true
	}, end: func(_ []byte, err error) {
		if err != nil {
			// A waiter whose watches are missing would sleep for ever. With Disconnected it begins anew.
			e.hub.disconnected()
			return
		}
		e.hub.confirmed(asked)
		if sure != nil && unarmed[0] == paths[0] {
			sure()
		}
	}}, nil)
	return watches
}
