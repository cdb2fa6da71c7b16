package zkconn

import "sync/atomic"

// unseen is the connection that brought an event without a zxid, as servers before 3.9 send them, until an answer has said
// how new the state of the event is; nil otherwise. The handshake names the newest zxid of an answer (greet), so alone it does
// not keep the session from a server that has not heard of the event's cause yet. A sync in front of all other requests does.
type unseen struct{ atomic.Pointer[wire] }

// event notes an event that came on w. The first of several stays: the answer that ends it ends the later ones, too.
func (u *unseen) event(w *wire, zxid int64) {
	if zxid <= 0 {
		u.CompareAndSwap(nil, w)
	}
}

// answer notes an answer that came on w. Behind an event on the same connection it has the zxid of a state that is as new.
func (u *unseen) answer(w *wire, zxid int64) {
	if zxid > 0 {
		u.CompareAndSwap(w, nil)
	}
}

// catchUp begins the connection w with a sync, if that is needed. Nothing waits for the answer: a server takes the requests of a
// session in order, so it answers none of the others before it has caught up. If it refuses the sync, the next connection tries.
func (u *unseen) catchUp(w *wire) {
	old := u.Load()
	if old == nil {
		return
	}
	sync := SyncAt(Heartbeat)
	w.send(&sentRequest{op: sync.op, end: func(_ []byte, err error) {
		if err == nil {
			u.CompareAndSwap(old, nil)
		}
	}}, sync.body)
}
