package zkconn

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// The client library takes 1.5 MB for each connection to receive into, and as much to send from. Almost nothing of
// ours goes through those. So it begins with small buffers, and gets more room when it needs that. Its options are functions
// on its connection object, so they can be called later, too, in the goroutine that uses the buffer:
//
//   - The library's loop dials, and does the handshake. It starts one goroutine that sends and one that
//     receives, and waits until both have ended before it dials again.
//   - The goroutine that receives takes a larger buffer for a frame that needs it, if the limit allows that. So dial
//     sets a small limit, and the first Read after the handshake sets the true one.
//   - The goroutine that sends takes no larger buffer by itself. Only a user sends
//     anything long through it, and needs Epoch.Conn for that: see sendBuffer.
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
	idle    bool          // the library may have a goroutine that waits for something to send
	wanted  bool          // a user has the connection object, or will have it
	settled chan struct{} // closed when the buffer is large, or the library has ended
}

// owned is called where the buffer belongs to the goroutine that calls: to the library's loop, which dials and does the
// handshake, or to its goroutine that sends, while it writes a frame. idle says whether the latter may wait for the next one from now on.
func (b *sendBuffer) owned(conn *zk.Conn, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = idle
	if b.wanted && !closed(b.settled) {
		sendAll(conn)
		close(b.settled)
	}
}

// end is called when the library has ended.
func (b *sendBuffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !closed(b.settled) {
		close(b.settled)
	}
}

// want makes the buffer large as soon as that is possible. It reports whether the library must send something before that.
func (b *sendBuffer) want() (waits bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted = true
	return b.idle && !closed(b.settled)
}
