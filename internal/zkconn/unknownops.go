package zkconn

import "sync"

// Not all servers know addWatch (3.6), removeWatches and createContainer (3.5); each of the three has a substitute. A server
// that does not know an operation answers so and closes the connection, with everything else that is on it; some only close
// it. So an operation is refused once in the life of a client, and not sent any more.

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

// has reports whether the servers do not know an operation.
func (u *unknownOps) has(op int32) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ops[op].refused
}

// answered notes the answer to a request.
func (u *unknownOps) answered(op, code int32) { u.note(op, true, code == codeUnimplemented) }

// cut notes that a server closed the connection in place of an answer.
func (u *unknownOps) cut(op int32) { u.note(op, false, false) }

func (u *unknownOps) note(op int32, answered, refused bool) {
	if op != opAddWatch && op != opRemoveWatches && op != opCreateContainer {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ops == nil {
		u.ops = make(map[int32]opFate)
	}
	f := u.ops[op]
	f.known = f.known || answered
	if !answered {
		f.cuts++
	}
	f.refused = f.refused || refused || !f.known && f.cuts >= mostCuts
	u.ops[op] = f
}
