package zkqueue

import (
	"cmp"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/record"
)

// next has f take the next element that is free, and waits for one if there is none. If f returns elements.ErrChanged, another
// call has the element.
//
// It does not stand in line while it finds elements. In line only the first call looks at the elements, so an idle queue makes
// no requests, and an element wakes one consumer. The call that has just made the queue goes there at once: it is empty.
func (q *Queue[T]) next(c *elements.Call, f func(elements.Content) error) error {
	for stand := c.Made; !stand; {
		var p *elements.Pick
		var err error
		if p, stand, err = c.First(); err == nil && p != nil {
			if err = attempt(c, p, f); err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, elements.ErrChanged) {
			return err
		}
	}
	return q.wait(c, f)
}

// wait is next of a call that stands in line at once.
func (q *Queue[T]) wait(c *elements.Call, f func(elements.Content) error) error {
	return q.takers.run(c, 0, 0, func() error { return q.await(c, f) })
}

// errPanic is the outcome of an f that does not return.
var errPanic = errors.New("a decoder has panicked")

// attempt has f take an element.
func attempt(c *elements.Call, p *elements.Pick, f func(elements.Content) error) error {
	outcome := errPanic
	defer func() { c.Tried(p, outcome) }()
	all, err := c.Read(p)
	if err == nil {
		err = f(all[0])
	}
	outcome = err
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

// attemptFrom has f take an element of the view of the first in line, or one further into it if others have that. It goes past all that
// cannot be removed, because another program has made nodes below them: they may stay for ever.
func (q *Queue[T]) attemptFrom(c *elements.Call, v *elements.View, p *elements.Pick, f func(elements.Content) error) error {
	err := attempt(c, p, f)
	for missed := false; elements.Taken(err) && !missed; {
		missed = !errors.Is(err, zk.ErrNotEmpty)
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
