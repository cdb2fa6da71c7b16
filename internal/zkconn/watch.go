package zkconn

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Event is what a [Watch] reports, once.
type Event int

const (
	// Deleted means that the node was deleted while it was watched.
	Deleted Event = iota + 1
	// NotFound means that the node was not there when the server was to watch it: what
	// else had happened to it before, nobody has told.
	NotFound
	// Changed means that the node's data or children changed.
	Changed
	// Disconnected means that the connection was lost: anything may have happened to the
	// node since. Read again.
	Disconnected
)

// Watch is one subscription to one node. Its event comes once, in the order of the
// server's history among all watches of the same connection.
type Watch struct {
	hub  *hub
	key  watchKey
	tell func(Event)
}

// Stop ends the subscription. The watch on the server, one per node for all
// subscriptions, stays until the node changes, since the client cannot remove it.
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

// watchKey names a watch as the server does: data and child watches of one path
// are two.
type watchKey struct {
	path     string
	children bool
}

// hub holds the watches of one connection at a time. It is driven by the wire, in
// the goroutine that reads, so that events are told in wire order; a subscriber's
// tell must therefore not block.
//
// The client's own watches are not used: it tells each through a channel of its
// own, which loses the order, re-arms them after a reconnect in a way that races
// with its read loop, and only logs it when that fails. Here a cut connection
// ends all watches and the subscribers read again.
type hub struct {
	mu    sync.Mutex
	nodes map[watchKey]*watchedNode
}

type watchedNode struct {
	armed bool // the server was asked, on this connection, to watch the node for us
	sure  bool // and has said that it does
	subs  map[*Watch]struct{}
}

// node is what is known of a node; mu is held.
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

// subscribe adds a subscription to a node; mu is held.
func (h *hub) subscribe(key watchKey, tell func(Event)) (*Watch, *watchedNode) {
	w, n := &Watch{hub: h, key: key, tell: tell}, h.node(key)
	n.subs[w] = struct{}{}
	return w, n
}

// armed records, in the goroutine that reads, that the server acknowledged a read that set a watch.
func (h *hub) armed(key watchKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.node(key)
	n.armed, n.sure = true, true
}

// confirmed records the answer to a request for watches that is under way since they were marked as armed. A node that
// has had an event since is another one by now: what the answer says of it is over.
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

// event tells the subscribers of path what the server said of it.
func (h *hub) event(kind int32, path string) {
	switch kind {
	case eventDeleted:
		h.fire(watchKey{path, false}, Deleted)
		h.fire(watchKey{path, true}, Deleted)
	case eventData:
		h.fire(watchKey{path, false}, Changed)
	case eventChildren:
		h.fire(watchKey{path, true}, Changed)
	}
}

func (h *hub) fire(key watchKey, what Event) {
	h.mu.Lock()
	n := h.nodes[key]
	delete(h.nodes, key)
	if n != nil && what == Deleted && !n.sure {
		what = NotFound
	}
	h.mu.Unlock()
	if n == nil {
		return
	}
	for s := range n.subs {
		s.tell(what)
	}
}

// disconnected ends every watch of the connection.
func (h *hub) disconnected() {
	h.mu.Lock()
	keys := make([]watchKey, 0, len(h.nodes))
	for k := range h.nodes {
		keys = append(keys, k)
	}
	h.mu.Unlock()
	for _, k := range keys {
		h.fire(k, Disconnected)
	}
}

// Watch subscribes to the node at path. tell is called at most once, from the
// goroutine that reads the connection or the one that closes it, and must not
// block. When the node does not exist, no watch is left behind and the error is
// zk.ErrNoNode.
//
// The call blocks for one read, or none if the server already holds a watch of
// this connection on the node, until ctx ends or the epoch is over. It is not
// retried on a new connection: then tell gets [Disconnected].
//
// It is a read, and no setWatches as of WatchAll, because that read is all that is asked about a node that is not
// there: zkonce looks for its result twice before there is one, which would be two requests more.
func (e *Epoch) Watch(ctx context.Context, path string, tell func(Event)) (*Watch, error) {
	if e.client.external != nil {
		return e.WatchAll([]string{path}, func(_ string, what Event) { tell(what) }, nil)[0], nil
	}
	key := watchKey{path, false}
	e.hub.mu.Lock()
	w, n := e.hub.subscribe(key, tell) // before the read: its watch may fire before it returns
	armed := n.armed
	e.hub.mu.Unlock()
	if armed {
		return w, nil
	}
	if err := e.readToWatch(ctx, key); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// WatchChildren subscribes to the set of children of path and returns them. It
// always costs one read. Otherwise it is like [Epoch.Watch].
func (e *Epoch) WatchChildren(ctx context.Context, path string, tell func(Event)) (*Watch, []string, error) {
	key := watchKey{path, true}
	e.hub.mu.Lock()
	w, _ := e.hub.subscribe(key, tell)
	e.hub.mu.Unlock()
	l, err := start(e, request[listing]{
		op: opGetChildren2, body: readRequest(key.path, true),
		decode: func(r *jute.Decoder) (listing, error) {
			e.hub.armed(key)
			return decodeListing(r)
		},
		client: func(*zk.Conn) (listing, error) {
			names, err := e.armExternal(key)
			return listing{names: names}, err
		},
	}).Wait(ctx, e)
	if err != nil {
		w.Stop()
		return nil, nil, err
	}
	return w, l.names, nil
}

// WatchAll subscribes to the nodes at paths and sets what watches the server does
// not hold yet with one request, in the order given. It does not wait for the
// answer. tell gets the path; the rest is as with [Epoch.Watch]. Without a connection
// tell gets [Disconnected] for every path.
//
// sure, if not nil, is called in wire order too, as soon as the server is known to
// watch the first path: before WatchAll returns if it was known already. What is told
// of other nodes before may be from older watches of theirs, and then says nothing
// of whether the first node was still there.
func (e *Epoch) WatchAll(paths []string, tell func(path string, what Event), sure func()) []*Watch {
	// Before anything is subscribed to: on a later connection than the subscriptions are of, the answer would say
	// nothing of them.
	wire := e.current()
	watches := make([]*Watch, len(paths))
	var unarmed []string
	var asked []*watchedNode
	known := false
	e.hub.mu.Lock()
	for i, p := range paths {
		w, n := e.hub.subscribe(watchKey{p, false}, func(what Event) { tell(p, what) })
		watches[i] = w
		known = known || i == 0 && n.sure
		if !n.armed {
			// From here on, since nobody needs to wait for the answer: if the request is
			// not answered the connection is cut, and everything with it.
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
	if e.client.external != nil {
		for _, p := range unarmed {
			e.watchExternal(watchKey{p, false})
		}
		return watches
	}
	if wire == nil {
		e.hub.disconnected()
		return watches
	}
	wire.send(&sentRequest{op: opSetWatches, end: func(_ []byte, err error) {
		if err != nil {
			// Without its watches a waiter would sleep for ever. Let it begin anew.
			e.hub.disconnected()
			return
		}
		e.hub.confirmed(asked)
		if sure != nil && unarmed[0] == paths[0] {
			sure()
		}
	}}, setWatchesBody(unarmed))
	return watches
}

// readToWatch sends the read that sets the watch on a node.
func (e *Epoch) readToWatch(ctx context.Context, key watchKey) error {
	read := request[struct{}]{
		// getData, not exists: on a missing node exists leaves a watch on the server
		// that nothing would ever fire.
		op: opGetData, body: readRequest(key.path, true),
		decode: func(*jute.Decoder) (struct{}, error) {
			e.hub.armed(key)
			return struct{}{}, nil
		},
	}
	_, err := start(e, read).Wait(ctx, e)
	if errors.Is(err, zk.ErrNoAuth) {
		read.op = opExists // needs no permission
		_, err = start(e, read).Wait(ctx, e)
	}
	return err
}
