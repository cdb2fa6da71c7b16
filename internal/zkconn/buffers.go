package zkconn

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// The client library takes 1.5 MB for each connection to receive into, and as much to send from. Almost nothing of
// ours goes through those: pings, their answers, and watch events. So the library begins with small buffers, and gets more
// room when it needs that. Its options are functions on its connection object, so they can be called later, too. Each
// must be called in the goroutine that uses the buffer, because nothing else orders the two:
//
//   - The library's loop dials, and does the handshake. It starts one goroutine that sends and one that
//     receives, and waits until both have ended before it dials again.
//   - The goroutine that receives takes a buffer when it begins. It takes a larger one for a frame that needs it,
//     if the limit allows that. So dial sets a small limit, and the first Read after the handshake sets the true one.
//   - The goroutine that sends takes no larger buffer by itself, and what does not fit fails. Only a user sends through
//     it anything that is long, and needs Conn for that: see sendBuffer.
const small = 1 << 10

// receiveLittle and receiveAll set how much the client library takes into one buffer. The
// first is for its loop. The second is for the goroutine that receives: frames were checked by then.
var (
	receiveLittle = zk.WithMaxBufferSize(small)
	receiveAll    = zk.WithMaxBufferSize(maxListing)
)

// sendLittle and sendAll set the buffer from which the client library sends. The second is the library's own size.
var (
	sendLittle = zk.WithMaxConnBufferSize(small)
	sendAll    = zk.WithMaxConnBufferSize(1536 << 10)
)

// sendBuffer is the buffer from which the client library sends in one epoch. It is large from the first call of Conn on.
type sendBuffer struct {
	mu      sync.Mutex
	sending bool          // the library may have a goroutine that sends
	wanted  bool          // somebody has the connection object, or will have it
	large   chan struct{} // closed when the buffer is large
}

// owned is called where the buffer belongs to the goroutine that calls: to the library's loop, which dials and does the
// handshake, or to its goroutine that sends, between two frames. sending says whether the latter may run from now on.
func (b *sendBuffer) owned(conn *zk.Conn, sending bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending = sending
	if b.wanted && !closed(b.large) {
		sendAll(conn)
		close(b.large)
	}
}

// Conn is the client library's connection object. It ends with the epoch. The first call waits until the library sends
// something, for which it asks whether "/" exists, or until the library notices that its connection has ended. That
// takes no round trip, and two thirds of the session timeout where the network takes nothing.
func (e *Epoch) Conn() *zk.Conn {
	b := &e.sendBuffer
	b.mu.Lock()
	b.wanted = true
	sending := b.sending && !closed(b.large)
	b.mu.Unlock()
	// If no goroutine sends, the loop starts the next one, after a handshake that makes the buffer large. If one
	// sends, it could take the next request before it knows.
	if sending {
		go func() { _, _, _ = e.conn.Exists("/") }() // ends with the connection object at the latest
		select {
		case <-b.large:
		case <-e.alive.Done(): // the connection object is closed, or will be
		}
	}
	return e.conn
}
