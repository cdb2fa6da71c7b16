package zkqueue

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// next has f take the next element that is free, and waits for one if there is none. If f returns elements.ErrAgain, the
// element was taken by others.
//
// It does not stand in line while it finds elements. In line only the first one looks at the elements, so an idle queue makes
// no requests, and an element wakes one consumer. Whoever has just made the queue goes there at once: it was empty.
func (q *Queue[T]) next(ctx context.Context, e *zkconn.Epoch, made bool, f func(elements.Content) error) error {
	s := q.raw.Search(e)
	for line := made; !line; {
		p, others, err := s.First(ctx)
		if err == nil && p != nil {
			if err = q.attempt(ctx, e, s, p, f); err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, elements.ErrAgain) {
			return err
		}
		line = others
	}
	return inLine(ctx, e, q.raw.Takers, 2, func() error { return q.await(ctx, e, s, f) })
}

// attempt has f take an element.
func (q *Queue[T]) attempt(ctx context.Context, e *zkconn.Epoch, s *elements.Search, p *elements.Pick, f func(elements.Content) error) error {
	all, err := q.raw.Read(ctx, e, p)
	if err == nil {
		err = f(all[0])
	}
	s.Tried(p, err)
	return err
}

// await is for the first in line: it waits until an element is free, and has f take it. If others are quicker, it tries one
// further into the queue, and then looks again.
func (q *Queue[T]) await(ctx context.Context, e *zkconn.Epoch, s *elements.Search, f func(elements.Content) error) error {
	changes := record.Hear(e)
	defer changes.Stop()
	for changed := false; ; changed = true {
		v, err := s.Watch(ctx, changes, changed)
		if err != nil {
			return err
		}
		// As long as nothing is heard, nothing has changed: the view shows which element becomes due.
		for heard := ""; heard == ""; {
			p, next, err := s.From(ctx, v, false)
			if err == nil && p != nil {
				return q.attemptFrom(ctx, e, s, v, p, f)
			}
			if err == nil {
				heard, _, err = changes.Next(ctx, next)
			}
			if err != nil {
				return err
			}
		}
		changes.Stop() // a change of both directories is one
	}
}

// attemptFrom has f take an element of the view of the first in line, or one further into it if others have that.
func (q *Queue[T]) attemptFrom(ctx context.Context, e *zkconn.Epoch, s *elements.Search, v *elements.View, p *elements.Pick, f func(elements.Content) error) error {
	err := q.attempt(ctx, e, s, p, f)
	if elements.Taken(err) {
		if p, _, err = s.From(ctx, v, true); p == nil {
			return cmp.Or(err, elements.ErrAgain)
		}
		err = q.attempt(ctx, e, s, p, f)
	}
	if err == nil {
		q.raw.Keep(v)
	}
	return err
}
