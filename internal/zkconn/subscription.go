package zkconn

import (
	"context"
	"sync"
)

// Change is a change of the state.
type Change struct {
	To      State
	Session int64 // whose state it is: of a change to Lost, the one that was lost; 0 without one
	Epoch   int64
}

// Subscription is one listener's queue of state changes. It is unbounded, so a
// slow listener misses nothing and holds nobody up.
type Subscription struct {
	// From is the state from which the first change leads away.
	From State

	client *Client
	mu     sync.Mutex
	queue  []Change
	more   chan struct{} // buffered 1: there is something in the queue
}

// Subscribe begins to record state changes, from the next one on.
func (c *Client) Subscribe() *Subscription {
	s := &Subscription{client: c, more: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs[s] = struct{}{}
	s.From = c.state
	if c.state == Closed {
		s.push(Change{To: Closed})
	}
	return s
}

func (s *Subscription) push(c Change) {
	s.mu.Lock()
	s.queue = append(s.queue, c)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Next returns the next change. It blocks until there is one or ctx ends.
func (s *Subscription) Next(ctx context.Context) (Change, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			c := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return c, nil
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-ctx.Done():
			return Change{}, context.Cause(ctx)
		}
	}
}

// Stop ends the subscription.
func (s *Subscription) Stop() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	delete(s.client.subs, s)
}
