package session

import "strconv"

// State is what a Session knows about its connection to the servers.
type State int

const (
	// Connected means that the servers are reachable and the session is alive.
	Connected State = iota + 1
	// Suspended means that the connection is down while the session can still be
	// proved to live: leases are held, calls wait.
	Suspended
	// Lost means that the session can no longer be proved to live: its leases are
	// lost. The Session goes on to open the next one.
	Lost
	// Closed means that Close was called. It is the last state.
	Closed
)

// String returns the state in lower case: "connected", "suspended", "lost" or
// "closed".
func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Lost:
		return "lost"
	case Closed:
		return "closed"
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}
