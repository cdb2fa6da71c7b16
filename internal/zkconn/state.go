package zkconn

import "context"

// State is what a client knows of its session.
type State int

// The states of a client's session. When a connection falls silent, one of two
// things happens first: the read deadline of the client library ends the connection
// (Suspended), or the lease clock ends the session (Lost, right after Connected).
const (
	Connecting State = iota
	Connected
	Suspended // disconnected; the session may be alive
	Lost      // the session ended or can no longer be proved alive
	Closed
)

// Change is a change of the state.
type Change struct {
	To      State
	Session int64 // whose state it is; for Lost, the session that was lost; 0 if there is none
	Epoch   int64
}

// history is a list of changes, from one change on. Each listener goes along
// it at its own pace. So a slow listener misses nothing and delays no other.
type history struct {
	come   chan struct{} // closed when the change has come; then change and rest are set
	change Change
	rest   *history
}

func newHistory() *history { return &history{come: make(chan struct{})} }

// add puts a change at the end, and returns the list of what comes after it.
func (h *history) add(c Change) *history {
	h.change, h.rest = c, newHistory()
	close(h.come)
	return h.rest
}

// Subscription is the position of one listener in the list of state changes.
type Subscription struct {
	// From is the state before the first change.
	From State

	at *history
}

// Next returns the next change. It blocks until there is one or ctx ends.
func (s *Subscription) Next(ctx context.Context) (Change, error) {
	select {
	case <-s.at.come:
	case <-ctx.Done():
		if !closed(s.at.come) { // a change that has come is returned even if ctx has ended, too
			return Change{}, ctx.Err()
		}
	}
	c := s.at.change
	s.at = s.at.rest
	return c, nil
}
