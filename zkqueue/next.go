package zkqueue

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// next has f take the next element that is free, and waits for one if there is none. If f returns elements.ErrAgain, the
// element was taken by others.
//
// Without others it does not stand in line. In line only the first one looks at the elements, so an idle queue makes
// no requests, and an element wakes one consumer.
func (q *Queue[T]) next(ctx context.Context, e *zkconn.Epoch, f func(elements.Content) error) error {
	p, line, err := q.raw.First(ctx, e)
	if err == nil && p != nil && !line {
		if err = q.attempt(ctx, e, p, f); err == nil {
			return nil
		}
	}
	if err != nil && !errors.Is(err, elements.ErrAgain) { // the first in line looks again
		return err
	}
	return inLine(ctx, e, q.raw.Takers, 2, func() error { return q.await(ctx, e, f) })
}

// attempt has f take an element. Whatever happens to it otherwise, it may still be the next.
func (q *Queue[T]) attempt(ctx context.Context, e *zkconn.Epoch, p *elements.Pick, f func(elements.Content) error) error {
	all, err := q.raw.Read(ctx, e, p)
	if err == nil {
		err = f(all[0])
	}
	if err != nil {
		q.raw.Forget()
	}
	return err
}

// await is for the first in line: it waits until an element is free, and has f take it.
func (q *Queue[T]) await(ctx context.Context, e *zkconn.Epoch, f func(elements.Content) error) error {
	changes := record.Hear(e)
	defer changes.Stop()
	for ; ; changes.Stop() { // a change of both directories is one
		v, err := q.raw.Watch(ctx, e, changes)
		if err != nil {
			return err
		}
		p, next, err := v.Pop()
		if err != nil {
			return err
		}
		if p != nil {
			return q.attempt(ctx, e, p, f)
		}
		if _, _, err := changes.Next(ctx, next); err != nil {
			return err
		}
	}
}
