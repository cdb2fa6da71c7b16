package zkqueue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// line is where calls wait for an element, or for room.
type line struct {
	*queue.Queue
	free int // how often the first in line tries again without a pause
}

// run calls f until it returns another error than elements.ErrChanged: outside the line for some attempts, then as the first in
// the line. f must be safe if another call is the first as well: the node of the first may be removed externally.
//
// With patience, the call leaves the line after a while and begins again; the while doubles each time. That is for an f that
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
		case errors.Is(err, errLine) && patience == 0:
			if err := pace.Rest(c, c.Epoch); err != nil {
				return err
			}
		case !errors.Is(err, errLine) && (t != nil || !tired):
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
	for pace := (node.Pace{Free: l.free}); ; {
		if err = f(); errors.Is(err, elements.ErrChanged) {
			if t.Over() && c.Epoch.Cause() == nil {
				err = errLine
			} else if err = pace.Rest(c, c.Epoch); err == nil {
				continue
			}
		}
		break
	}
	if err == nil {
		t.Leave(queue.Unawaited)
	} else {
		t.Leave(node.Grace)
	}
	return err
}

// next has f take the next element that is free, and waits for one if there is none. If f returns elements.ErrChanged, another
// call has the element.
//
// It does not stand in line while it finds elements. In line only the first call looks at the elements, so an idle queue makes
// no requests, and an element wakes one consumer. The call that has just made the queue goes there at once: it is empty.
func (q *Queue[T]) next(c *elements.Call, f func(elements.Content) error) error {
	for stand := c.Made; !stand; {
		p, others, err := c.First()
		if err == nil && p != nil {
			if err = attempt(c, p, f); err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, elements.ErrChanged) {
			return err
		}
		stand = others
	}
	return q.takers.run(c, 0, 0, func() error { return q.await(c, f) })
}

// attempt has f take an element.
func attempt(c *elements.Call, p *elements.Pick, f func(elements.Content) error) error {
	all, err := c.Read(p)
	if err == nil {
		err = f(all[0])
	}
	c.Tried(p, err)
	return err
}

// await is for the first in line: it waits until an element is free, and has f take it. If others are quicker, it tries one
// further into the queue, and then looks again.
func (q *Queue[T]) await(c *elements.Call, f func(elements.Content) error) error {
	changes := record.Hear(c.Epoch)
	defer changes.Stop()
	for changed := false; ; changed = true {
		v, err := c.Watch(changes, changed)
		if err != nil {
			return err
		}
		// As long as nothing is heard, nothing has changed: the view shows which element becomes due.
		for heard := ""; heard == ""; {
			p, next, err := c.From(v, false)
			if err == nil && p != nil {
				return q.attemptFrom(c, v, p, f)
			}
			if err == nil {
				heard, _, err = changes.Next(c, next)
			}
			if err != nil {
				return err
			}
		}
		changes.Stop() // a change of both directories is one
	}
}

// attemptFrom has f take an element of the view of the first in line, or one further into it if others have that.
func (q *Queue[T]) attemptFrom(c *elements.Call, v *elements.View, p *elements.Pick, f func(elements.Content) error) error {
	err := attempt(c, p, f)
	if elements.Taken(err) {
		if p, _, err = c.From(v, true); p == nil {
			return cmp.Or(err, elements.ErrChanged)
		}
		err = attempt(c, p, f)
	}
	if err == nil {
		q.raw.Keep(v)
	}
	return err
}
