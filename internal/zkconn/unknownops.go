package zkconn

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// Not all servers know all operations that are used here: addWatch came with 3.6, removeWatches and createContainer with 3.5, and
// servers that only speak the protocol leave some out. Each of the three has a substitute. A server that does not know an
// operation answers so and closes the connection, with everything else that is on it; some only close it. So an operation is
// refused once in the life of a client. Then it is not sent any more, in no session: a new session is with the same servers. If those
// are replaced by newer ones meanwhile, the substitutes go on.

// unknownOps is what a client has found out about these operations.
type unknownOps struct {
	mu  sync.Mutex
	ops map[int32]opFate
}

type opFate struct {
	known   bool // servers have answered it
	refused bool // they do not know it
	cuts    int  // how many connections they have closed in place of an answer, before it was known
}

// mostCuts is how many connections an operation that no server has ever answered may cost. A network that cuts each connection
// just then would have an operation that the servers do know replaced by its substitute, which is slower and not wrong.
const mostCuts = 3

// mayBeUnknown tells whether an operation has a substitute.
func mayBeUnknown(op int32) bool {
	return op == opAddWatch || op == opRemoveWatches || op == opCreateContainer
}

// has reports whether the servers do not know an operation.
func (u *unknownOps) has(op int32) bool {
	if !mayBeUnknown(op) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ops[op].refused
}

// answered notes the answer to a request.
func (u *unknownOps) answered(op, code int32) {
	u.note(op, func(f *opFate) {
		f.known = true
		f.refused = f.refused || code == codeUnimplemented
	})
}

// lost notes the requests that were on a connection that has ended.
func (u *unknownOps) lost(sent map[int32]*sentRequest, cause error) {
	if !closedByPeer(cause) {
		return
	}
	ops := make(map[int32]struct{})
	for _, r := range sent {
		ops[r.op] = struct{}{}
	}
	for op := range ops {
		u.note(op, func(f *opFate) {
			f.cuts++
			f.refused = f.refused || !f.known && f.cuts >= mostCuts
		})
	}
}

func (u *unknownOps) note(op int32, f func(*opFate)) {
	if !mayBeUnknown(op) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ops == nil {
		u.ops = make(map[int32]opFate)
	}
	fate := u.ops[op]
	f(&fate)
	u.ops[op] = fate
}

// closedByPeer reports whether a connection was ended by the other side, or on the way to it.
func closedByPeer(cause error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(cause, e) {
			return true
		}
	}
	return false
}
