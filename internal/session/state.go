package session

import (
	"context"
	"iter"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// State is documented in package zksync.
type State int

const (
	Connected State = iota + 1
	Suspended
	Lost
	Closed
)

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

// trace calls the tracer with the session, and then with each change of its state, as far as it has these parts.
func (s *Session) trace() {
	t := s.settings.Trace
	if t == nil {
		return
	}
	sub := s.client.Subscribe() // no change during Opened is missed
	if t.Opened != nil {
		t.Opened(s)
	}
	if t.State == nil {
		return
	}
	s.work.Go(func() {
		for from := publicState(sub.From); from != Closed; {
			next, err := sub.Next(context.Background()) // ends with Closed
			if err != nil {
				return
			}
			to := publicState(next.To)
			t.State(Change{from, to, next.Session, uint64(next.Epoch)})
			from = to
		}
	})
}

// publicState is the state that users see for a state of the connection.
func publicState(st zkconn.State) State {
	switch st {
	case zkconn.Connected:
		return Connected
	case zkconn.Suspended, zkconn.Connecting:
		return Suspended
	case zkconn.Lost:
		return Lost
	}
	return Closed
}

// State is the state at this instant.
func (s *Session) State() State { return publicState(s.client.State()) }

// Changes is zksync.Session.Changes.
func (s *Session) Changes(ctx context.Context) iter.Seq[State] {
	sub := s.client.Subscribe()
	return func(yield func(State) bool) {
		for {
			next, err := sub.Next(ctx)
			if err != nil {
				return
			}
			st := publicState(next.To)
			if !yield(st) || st == Closed {
				return
			}
		}
	}
}
