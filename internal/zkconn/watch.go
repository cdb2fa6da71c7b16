package zkconn

import (
	"context"
	"errors"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// WatchAll subscribes to the nodes at paths. With one request it sets the watches that the server
// does not hold yet, in the order given. It does not wait for the answer. tell gets the path; the
// rest is as with [Epoch.Watch]. Without a connection tell gets [Disconnected] for every path.
//
// sure, if not nil, is called in wire order, too, as soon as the server is known to watch the first
// path; before WatchAll returns, if that was known already. Events of other nodes before may
// come from older watches of theirs. Then they do not say whether the first node was still there.
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
	e.hub.mu.Lock()
	for i, p := range paths {
		w, n := e.hub.subscribe(watchKey{p, kind}, func(what Event) { tell(p, what) })
		watches[i] = w
		switch {
		case i > 0 || sure == nil:
		case n.sure:
			sure() // under the lock, so that no event overtakes it
		default: // also if an earlier request asks for it, which is not answered yet
			n.confirm = append(n.confirm, sure)
		}
		if !n.armed {
			// The node counts as armed from here on, since nothing needs to wait for the answer:
			// if the request is not answered, the connection is cut, and all its watches end.
			n.armed = true
			unarmed, asked = append(unarmed, p), append(asked, n)
		}
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
			// A waiter whose watches are missing would sleep for ever. With Disconnected it begins again.
			e.hub.disconnected()
			return
		}
		e.hub.confirmed(asked...)
	}}, nil)
	return watches
}

// setWatchesBody is the body of a request that sets a watch of this kind on every path. The server reports at once
// that a node is gone, with an event before the reply. The request names the zxid up to which the
// caller claims to know the nodes. It is the highest there is, so that no node counts as changed since.
func setWatchesBody(kind watchKind, paths []string) []byte {
	b := jute.AppendInt64(nil, math.MaxInt64)
	for _, list := range []watchKind{dataWatch, absenceWatch, childWatch} {
		if list != kind {
			b = jute.AppendInt32(b, 0)
			continue
		}
		b = jute.AppendInt32(b, int32(len(paths)))
		for _, p := range paths {
			b = jute.AppendText(b, p)
		}
	}
	return b
}

// Watch subscribes to the node at path. tell is called at most once, from the goroutine that reads the connection or the
// one that closes it, and must not block. If the node does not exist, no watch is left behind and the error is
// zk.ErrNoNode. It costs one read, or none if the server already holds a watch of this connection on the node, and does not
// try again on a new connection: then tell gets [Disconnected].
func (e *Epoch) Watch(ctx context.Context, path string, tell func(Event)) (*Watch, error) {
	key := watchKey{path, dataWatch}
	e.hub.mu.Lock()
	w, n := e.hub.subscribe(key, tell) // before the read: its watch may fire before it returns
	armed := n.armed
	e.hub.mu.Unlock()
	if armed {
		return w, nil
	}
	// This is getData, and not exists: on a missing node exists
	// leaves a watch on the server that nothing would ever fire.
	read := Start(e, watching(e, key, n, Request[struct{}]{op: opGetData, decode: decodeNothing}))
	if _, err := read.Wait(ctx, e); errors.Is(err, zk.ErrNoAuth) { // exists needs no permission
		read = Start(e, watching(e, key, n, Request[struct{}]{op: opExists, decode: decodeNothing}))
	}
	w, _, err := awaitWatch(ctx, e, w, read)
	return w, err
}

// watching makes r the read that sets the watch key, of which n is known. If the server
// watches the whole tree below the path, the read sets no watch: see hub.
func watching[T any](e *Epoch, key watchKey, n *watchedNode, r Request[T]) Request[T] {
	decode := r.decode
	r.about = key.path
	r.turn = func() ([]byte, bool) {
		e.hub.mu.Lock()
		defer e.hub.mu.Unlock()
		return readRequest(key.path, !e.hub.covers(key.path)), true
	}
	r.decode = func(d *jute.Decoder) (T, error) {
		e.hub.confirmed(n)
		return decode(d)
	}
	return r
}

// StartWatchData subscribes to the node at path and reads it, with one request, once. It does not wait for the answer.
// If the node does not exist, the answer is zk.ErrNoNode, and no watch is left behind. After an error the
// caller must call [GiveUp]. The rest is as with [Epoch.Watch].
func (e *Epoch) StartWatchData(path string, tell func(Event)) (*Watch, *Call[Content]) {
	return startWatch(e, watchKey{path, dataWatch}, tell, Request[Content]{op: opGetData, decode: decodeContent})
}

// WatchData is StartWatchData for a caller that waits for the answer. After an error there is no subscription.
func (e *Epoch) WatchData(ctx context.Context, path string, tell func(Event)) (*Watch, Content, error) {
	w, call := e.StartWatchData(path, tell)
	return awaitWatch(ctx, e, w, call)
}

// StartWatchChildren is [Epoch.StartWatchData] for the set of children of path.
func (e *Epoch) StartWatchChildren(path string, tell func(Event)) (*Watch, *Call[Listing]) {
	return startWatch(e, watchKey{path, childWatch}, tell, Request[Listing]{op: opGetChildren2, decode: decodeListing})
}

// WatchChildren is StartWatchChildren for a caller that waits for the answer. After an error there is no subscription.
func (e *Epoch) WatchChildren(ctx context.Context, path string, tell func(Event)) (*Watch, Listing, error) {
	w, call := e.StartWatchChildren(path, tell)
	return awaitWatch(ctx, e, w, call)
}

// StartWatchAbsence subscribes to the creation of a node at path, with one request, and does not wait for the answer, which is
// zk.ErrNoNode if there is no node: then tell gets [Created]. Otherwise tell gets the next event of the node. The rest is as
// with [Epoch.StartWatchData]. The server keeps such a watch until there is a node, so the caller should end it with [Epoch.Unwatch].
func (e *Epoch) StartWatchAbsence(path string, tell func(Event)) (*Watch, *Call[*zk.Stat]) {
	return startWatch(e, watchKey{path, absenceWatch}, tell, Request[*zk.Stat]{op: opExists, decode: decodeStat})
}

// startWatch subscribes to key, and sends the read that sets its watch.
func startWatch[T any](e *Epoch, key watchKey, tell func(Event), read Request[T]) (*Watch, *Call[T]) {
	e.hub.mu.Lock()
	w, n := e.hub.subscribe(key, tell)
	e.hub.mu.Unlock()
	return w, Start(e, watching(e, key, n, read))
}

func awaitWatch[T any](ctx context.Context, e *Epoch, w *Watch, call *Call[T]) (*Watch, T, error) {
	v, err := call.Wait(ctx, e)
	if err != nil {
		GiveUp(e, w, call)
		return nil, v, err
	}
	return w, v, nil
}

// GiveUp ends a subscription whose read was of no use: it failed, or nothing waited for the answer. If the server holds the
// watch, or may yet come to hold it, it is made to forget it.
func GiveUp[T any](e *Epoch, w *Watch, read *Call[T]) {
	if read.Answered() {
		_, err := read.Result()
		absent := w.key.kind == absenceWatch && errors.Is(err, zk.ErrNoNode) // that is what such a watch is set on
		if err != nil && !absent {
			w.Stop()
			return
		}
	}
	e.Unwatch(w)
}

// WatchTree subscribes to the node at path, which need not exist, and to all nodes below it. tell gets the path of
// each node that was created, changed or deleted since, in wire order, from the goroutine that reads the
// connection, and must not block. It gets [Disconnected] once, with the path of the tree, when the server does not hold the
// watch any more. After that it gets nothing.
//
// The request is sent once. Servers before 3.6 refuse it (Unimplemented), once; then it fails so without a request.
// A server sends no events of a node that the session may not read.
func (e *Epoch) WatchTree(ctx context.Context, path string, tell func(path string, what Event)) (*TreeWatch, error) {
	h := &e.hub
	w := &TreeWatch{h, path, tell, func(needed func() bool) { e.removeWatches(path, anyWatches, needed) }}
	t := h.subscribeTree(w)
	const recursive = 1
	_, err := Start(e, Request[struct{}]{op: opAddWatch, turn: func() ([]byte, bool) {
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
		w.refused()
		return nil, err
	case err != nil:
		w.Stop()
		return nil, err
	}
	return w, nil
}

// Unwatch is [Watch.Stop], and has the server forget the watch if nothing else waits for its event. That costs a
// request, for whose answer it does not wait, unless the event has come.
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

// The kinds of watches that removeWatches knows.
const (
	childWatches = 1
	dataWatches  = 2
	anyWatches   = 3
)

// removeWatches has the server forget watches, if they are not needed any more when the request is written. Without a
// connection they are gone already. Servers that do not know the request keep them until their events, which wake nothing.
func (e *Epoch) removeWatches(path string, kind int32, unneeded func() bool) {
	body := jute.AppendInt32(jute.AppendText(nil, path), kind)
	Start(e, Request[struct{}]{
		op: opRemoveWatches, turn: func() ([]byte, bool) { return body, unneeded() },
		decode: decodeNothing, // a refusal says that there is no such watch
	})
}
