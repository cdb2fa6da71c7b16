package zkconn

import "sync"

// Not all servers know addWatch and multiRead (3.6), removeWatches and createContainer (3.5); each of the four has a substitute. A server
// that does not know an operation answers so and closes the connection, with everything else that is on it; some only close
// it. So the operations of one release are refused once in the life of a client, and not sent any more.

// unknownOps is what a client has found out about these operations.
type unknownOps struct {
	mu   sync.Mutex
	cuts map[int32]int // how many connections servers have closed in place of an answer; known, or at least mostCuts, is final
}

// mostCuts is how many connections an operation that no server has ever answered may cost. A network that cuts each connection
// just then would have an operation that the servers do know replaced by its substitute, which is slower and not wrong.
const mostCuts = 3

// known is in cuts for an operation that servers have answered.
const known = -1

// has reports whether the servers do not know an operation.
func (u *unknownOps) has(op int32) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cuts[op] >= mostCuts
}

// answered notes the answer to a request.
func (u *unknownOps) answered(op, code int32) { u.note(op, true, code == codeUnimplemented) }

// cut notes that a server closed the connection in place of an answer.
func (u *unknownOps) cut(op int32) { u.note(op, false, false) }

func (u *unknownOps) note(op int32, answered, refused bool) {
	switch op {
	case opAddWatch, opMultiRead, opRemoveWatches, opCreateContainer:
	default:
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cuts == nil {
		u.cuts = make(map[int32]int)
	}
	switch cuts := u.cuts[op]; {
	case refused:
		u.cuts[op] = mostCuts
		if op == opAddWatch || op == opMultiRead { // both came with one release
			u.cuts[opAddWatch], u.cuts[opMultiRead] = mostCuts, mostCuts
		}
	case cuts == known || cuts >= mostCuts:
	case answered:
		u.cuts[op] = known
	default:
		u.cuts[op]++
	}
}
