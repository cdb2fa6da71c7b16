package zkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// line is where calls wait for an element, or for room.
type line struct {
	*queue.Queue
	free int // how often the first in line tries again without a pause
}

// run calls f until it returns another error than elements.ErrChanged: outside the line for some attempts, then as the first in
// the line. Two calls may be the first at the same time, if a node is removed externally; that must not harm f.
//
// With patience, the call leaves the line after that time and begins again. The time doubles each time. That is for an f that
// does not wait: those ahead in line may wait for elements when there are none any more, and then f would return at once.
func (l line) run(c *elements.Call, attempts int, patience time.Duration, f func() error) error {
	for pace := (node.Pace{Free: 1}); ; patience *= 2 {
		outside := node.Pace{Free: 2}
		for range attempts {
			if err := f(); !errors.Is(err, elements.ErrChanged) {
				return err
			}
			if err := outside.Rest(c, c.Epoch); err != nil {
				return err
			}
		}
		waiting, cancel := context.WithCancel(c)
		if patience > 0 {
			waiting, cancel = context.WithTimeout(c, patience)
		}
		t, err := l.Obtain(waiting, nil)
		tired := c.Err() == nil && waiting.Err() != nil
		cancel()
		if err == nil {
			err = l.inTurn(c, t, f)
		}
		switch {
		case t == nil && tired, errors.Is(err, errLine) && patience > 0: // again, outside the line
		case errors.Is(err, errLine): // again, in the line
			if err := pace.Rest(c, c.Epoch); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// errLine means that the caller's node in a line was removed, and that other callers are quicker.
var errLine = errors.New("the place in the line is gone")

// inTurn is run with the ticket of the first in line, until the place is lost: errLine.
func (l line) inTurn(c *elements.Call, t *queue.Ticket, f func() error) (err error) {
	if t.Epoch != c.Epoch {
		t.Leave(0)
		return zkconn.ErrOver // what the caller knows is of another session
	}
	defer func() { // also if f panics, in a user's decoder: else nobody would have a turn any more
		if err == nil {
			t.Leave(queue.Unawaited)
		} else {
			t.Leave(node.Grace)
		}
	}()
	for pace := (node.Pace{Free: l.free}); ; {
		if err = f(); !errors.Is(err, elements.ErrChanged) {
			return err
		}
		if t.Over() && c.Epoch.Cause() == nil {
			return errLine
		}
		if err := pace.Rest(c, c.Epoch); err != nil {
			return err
		}
	}
}
