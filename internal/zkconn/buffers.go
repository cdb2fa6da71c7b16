package zkconn

import "github.com/go-zookeeper/zk"

// The client library takes 1.5 MB for each connection to receive into. Almost nothing of ours goes through that: pings'
// answers and watch events. So the library begins with a small buffer, and gets more room when it needs that. Its options
// are functions on its connection object, so they can be called later, too. Each must be called in the goroutine that uses
// the buffer, because nothing else orders the two:
//
//   - The library's loop dials, and does the handshake. It starts one goroutine that sends and one that
//     receives, and waits until both have ended before it dials again.
//   - The goroutine that receives takes a buffer when it begins. It takes a larger one for a frame that needs it,
//     if the limit allows that. So dial sets a small limit, and the first Read after the handshake sets the true one.
//
// Another 1.5 MB to send from stay. Nobody touches them unless the user sends something through Session.Conn, so the
// operating system gives no memory for most of them.
const small = 1 << 10

// receiveLittle and receiveAll set how much the client library takes into one buffer. The
// first is for its loop. The second is for the goroutine that receives: frames were checked by then.
var (
	receiveLittle = zk.WithMaxBufferSize(small)
	receiveAll    = zk.WithMaxBufferSize(maxListing)
)
