package zkconn

import "github.com/go-zookeeper/zk"

// The client library takes 1.5 MB for each session to send from, and 1.5 MB more for each connection to receive into.
// Almost nothing of ours goes through them: pings, their answers, and watch events. So the library begins with
// small buffers, and gets more room when it needs that. Its options are functions on its connection object, so they
// can be called later, too. Each must be called in the goroutine that uses the buffer, because nothing else orders the two:
//
//   - The library's loop dials, and does the handshake. It starts one goroutine that sends and one that
//     receives, and waits until both have ended before it dials again.
//   - The goroutine that receives takes a buffer when it begins. It takes a larger one for a frame that needs it,
//     if the limit allows that. So dial sets a small limit, and the first Read after the handshake sets the true one.
//   - The goroutine that sends needs room for whatever the user sends, before it calls us. Users get at the
//     library only through Conn. So from Conn on, the next connection, or the next write on this one, gives it room.
const (
	small = 1 << 10
	roomy = 1536 << 10 // what the library takes if it is left alone; servers take no requests of more than 1 MB
)

// receiveLittle and receiveAll set how much the client library takes into one buffer. The
// first is for its loop. The second is for the goroutine that receives: frames were checked by then.
var (
	receiveLittle = zk.WithMaxBufferSize(small)
	receiveAll    = zk.WithMaxBufferSize(maxListing)
)

// Conn is the client library's connection object. It ends with the epoch. The first call on a connection that
// stands has to send a request, to make the library take room for what the caller may send. Conn waits until that is
// written, not for the answer. It waits no longer than until the library dials again, or the epoch is over.
func (e *Epoch) Conn() *zk.Conn {
	if e.client.external != nil {
		return e.conn
	}
	e.mu.Lock()
	if e.room == nil {
		e.room = make(chan struct{})
		if e.wire != nil { // else the handshake that follows makes room before anything is sent: see greeted
			go func() { _, _, _ = e.conn.Exists("/") }() // whatever the answer, it was written: see wire.Write
		}
	}
	room, linked := e.room, e.wire != nil
	e.mu.Unlock()
	if linked {
		select {
		case <-room:
		case <-e.over:
		}
	}
	return e.conn
}

// makeRoom gives the library a buffer for large requests if the user wants to send some. It is called in the
// goroutine that uses the buffer, or in the library's loop while that goroutine does not run. mu is held.
func (e *Epoch) makeRoom() {
	if e.room != nil && !e.hasRoom {
		e.hasRoom = true
		zk.WithMaxConnBufferSize(roomy)(e.conn)
		close(e.room) // after the buffer is there: who waits may send
	}
}
