package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Watch subscribes to the node at path. tell is called at most once, from the
// goroutine that reads the connection or the one that closes it, and must not block.
// If the node does not exist, no watch is left behind and the error is zk.ErrNoNode.
//
// It blocks for one read, or for none if the server already holds a watch
// of this connection on the node. It does not try again on a new connection: then tell gets [Disconnected].
//
// It sends a read, not a setWatches as WatchAll does: the answer says whether the node exists, which saves zkonce two requests.
func (e *Epoch) Watch(ctx context.Context, path string, tell func(Event)) (*Watch, error) {
	key := watchKey{path, dataWatch}
	e.hub.mu.Lock()
	w, n := e.hub.subscribe(key, tell) // before the read: its watch may fire before it returns
	armed := n.armed
	e.hub.mu.Unlock()
	if armed {
		return w, nil
	}
	nothing := func(*jute.Decoder) (struct{}, error) { return struct{}{}, nil }
	// This is getData, and not exists: on a missing node exists
	// leaves a watch on the server that nothing would ever fire.
	read := start(e, watching(e, key, n, request[struct{}]{op: opGetData, decode: nothing}))
	_, err := read.Wait(ctx, e)
	if errors.Is(err, zk.ErrNoAuth) { // exists needs no permission
		read = start(e, watching(e, key, n, request[struct{}]{op: opExists, decode: nothing}))
		_, err = read.Wait(ctx, e)
	}
	if err != nil {
		GiveUp(e, w, read)
		return nil, err
	}
	return w, nil
}

// watching makes r the read that sets the watch key, of which n is known. If the server
// watches the whole tree below the path, the read sets no watch: see watchtree.go.
func watching[T any](e *Epoch, key watchKey, n *watchedNode, r request[T]) request[T] {
	decode := r.decode
	r.about = key.path
	r.turn = func() ([]byte, bool) { return readRequest(key.path, !e.hub.covered(key.path)), true }
	r.decode = func(d *jute.Decoder) (T, error) {
		e.hub.armed(n)
		return decode(d)
	}
	return r
}

// StartWatchData subscribes to the node at path and reads it, with one request, once. It does not wait for the answer.
// If the node does not exist, the answer is zk.ErrNoNode, and no watch is left behind. After an error the
// caller must call [GiveUp]. The rest is as with [Epoch.Watch].
func (e *Epoch) StartWatchData(path string, tell func(Event)) (*Watch, *Call[Content]) {
	return startWatch(e, watchKey{path, dataWatch}, tell, request[Content]{op: opGetData, decode: decodeContent})
}

// WatchData is StartWatchData for a caller that waits for the answer. After an error there is no subscription.
func (e *Epoch) WatchData(ctx context.Context, path string, tell func(Event)) (*Watch, Content, error) {
	w, call := e.StartWatchData(path, tell)
	return awaitWatch(ctx, e, w, call)
}

// StartWatchChildren is [Epoch.StartWatchData] for the set of children of path.
func (e *Epoch) StartWatchChildren(path string, tell func(Event)) (*Watch, *Call[Listing]) {
	return startWatch(e, watchKey{path, childWatch}, tell, request[Listing]{op: opGetChildren2, decode: decodeListing})
}

// WatchChildren is StartWatchChildren for a caller that waits for the answer. After an error there is no subscription.
func (e *Epoch) WatchChildren(ctx context.Context, path string, tell func(Event)) (*Watch, Listing, error) {
	w, call := e.StartWatchChildren(path, tell)
	return awaitWatch(ctx, e, w, call)
}

// WatchAbsence subscribes to the creation of a node at path, with one request: tell gets [Created]. If there is a node,
// there says so, and tell gets the next event of that. The rest is as with [Epoch.WatchData]. The
// server keeps such a watch until there is a node, so the caller should end it with [Epoch.Unwatch].
func (e *Epoch) WatchAbsence(ctx context.Context, path string, tell func(Event)) (w *Watch, there bool, err error) {
	w, call := e.StartWatchAbsence(path, tell)
	_, err = call.Wait(ctx, e)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		GiveUp(e, w, call)
		return nil, false, err
	}
	return w, err == nil, nil
}

// StartWatchAbsence is WatchAbsence for a caller that does not wait for the answer, which is zk.ErrNoNode if there is no node.
func (e *Epoch) StartWatchAbsence(path string, tell func(Event)) (*Watch, *Call[*zk.Stat]) {
	return startWatch(e, watchKey{path, absenceWatch}, tell, request[*zk.Stat]{op: opExists, decode: decodeStat})
}

// startWatch subscribes to key, and sends the read that sets its watch.
func startWatch[T any](e *Epoch, key watchKey, tell func(Event), read request[T]) (*Watch, *Call[T]) {
	e.hub.mu.Lock()
	w, n := e.hub.subscribe(key, tell)
	e.hub.mu.Unlock()
	return w, start(e, watching(e, key, n, read))
}

func awaitWatch[T any](ctx context.Context, e *Epoch, w *Watch, call *Call[T]) (*Watch, T, error) {
	v, err := call.Wait(ctx, e)
	if err != nil {
		GiveUp(e, w, call)
		return nil, v, err
	}
	return w, v, nil
}

// GiveUp ends a subscription whose read was of no use: it failed, or nobody waited for the answer. If the server holds the
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
