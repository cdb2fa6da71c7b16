package zkconn

import "context"

// Change is a change of the state.
type Change struct {
	To      State
	Session int64 // whose state it is: of a change to Lost, the one that was lost; 0 without one
	Epoch   int64
}

// history is a list of changes, from one on. Each listener goes along it at a pace of its own, so a
// slow one misses nothing and holds nobody up.
type history struct {
	come   chan struct{} // closed when there is a change, which the next two fields are of
	change Change
	rest   *history
}

func newHistory() *history { return &history{come: make(chan struct{})} }

// add puts a change at the end, and returns what is to come after that.
func (h *history) add(c Change) *history {
	h.change, h.rest = c, newHistory()
	close(h.come)
	return h.rest
}

// Subscription is one listener's place among the state changes.
type Subscription struct {
	// From is the state from which the first change leads away.
	From State

	at *history
}

// Subscribe begins to follow state changes, from the next one on. A client that is closed tells that.
func (c *Client) Subscribe() *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Subscription{From: c.state, at: c.future}
	if c.state == Closed {
		s.at = newHistory()
		s.at.add(Change{To: Closed})
	}
	return s
}

// Next returns the next change. It blocks until there is one or ctx ends.
func (s *Subscription) Next(ctx context.Context) (Change, error) {
	select {
	case <-s.at.come:
	case <-ctx.Done():
		if !closed(s.at.come) { // what has come is told also to whoever's ctx has ended
			return Change{}, context.Cause(ctx)
		}
	}
	c := s.at.change
	s.at = s.at.rest
	return c, nil
}
