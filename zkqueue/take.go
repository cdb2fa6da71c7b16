package zkqueue

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
)

// Take waits for an element that is neither delayed nor delivered, in the order of the calls, and removes it.
// If the process fails before its work is done, the work is lost: see Receive. After a zksync.Ambiguous error
// the element may be lost.
func (q *Queue[T]) Take(ctx context.Context) (v T, err error) {
	attempt := 0
	err = q.made().raw.Run(ctx, "take", func(c *elements.Call) error {
		return q.next(c, func(el elements.Content) error {
			attempt = el.Attempt()
			return q.takeOne(c, el, &v)
		})
	})
	if err == nil {
		q.traceTaken(ctx, attempt)
	}
	return v, err
}

// TryTake is Take if there is an element now; else it returns false.
func (q *Queue[T]) TryTake(ctx context.Context) (v T, ok bool, err error) {
	number := 0
	err = q.made().raw.Run(ctx, "try-take", func(c *elements.Call) error {
		err := q.any(c, func(el elements.Content) error {
			number = el.Attempt()
			return q.takeOne(c, el, &v)
		})
		if ok = err == nil; err == errs.ErrNotAcquired {
			err = nil
		}
		return err
	})
	if ok {
		q.traceTaken(ctx, number)
	}
	return v, ok, err
}

// persist has f take what there is, without a wait. If others are quicker again and again, it stands in line: calls that list
// the elements then stand behind it. Its turn comes if there are elements all the time.
func (q *Queue[T]) persist(c *elements.Call, f func() error) error {
	const attempts = 5
	return q.takers.run(c, attempts, time.Second, f)
}

func (q *Queue[T]) takeOne(c *elements.Call, el elements.Content, v *T) error {
	values, err := q.take(c, el)
	if err == nil {
		*v = values[0]
	}
	return err
}

// take removes elements. They are decoded before, so that nothing can fail afterwards. The first one that cannot be decoded
// is removed all the same, and those behind it stay.
func (q *Queue[T]) take(c *elements.Call, all ...elements.Content) (values []T, err error) {
	var undecodable error
	for i, el := range all {
		v, err := q.decode(el)
		if err != nil {
			all, undecodable = all[:i+1], err
			break
		}
		values = append(values, v)
	}
	if err := c.Remove(all...); err != nil {
		return nil, err
	}
	return values, undecodable
}

// Peek returns the first element that could be taken now, and leaves it there, also one that cannot be
// decoded.
func (q *Queue[T]) Peek(ctx context.Context) (v T, ok bool, err error) {
	err = q.made().raw.Run(ctx, "peek", func(c *elements.Call) error {
		return q.persist(c, func() error {
			view, err := c.Look()
			if err != nil {
				return err
			}
			p, _, err := view.Pop(nil)
			if p == nil {
				return err
			}
			all, err := c.Read(p)
			if err == nil {
				v, err = q.decode(all[0])
				ok = err == nil
			}
			return err
		})
	})
	return v, ok, err
}

// batch is how many elements are read or removed together.
const batch = 64

// Drain takes up to most elements that are there, and returns those that it has taken, also with an error. It
// removes up to 64 together: what [Queue.Take] says of errors holds for them.
func (q *Queue[T]) Drain(ctx context.Context, most int) (taken []T, err error) {
	var attempts []int
	err = q.made().raw.Run(ctx, "drain", func(c *elements.Call) error {
		q.raw.Forget() // what it removes is not in the way of the others of this object, but in their view
		return q.persist(c, func() error {
			if len(taken) >= most {
				return nil
			}
			view, err := c.Look()
			for err == nil && len(taken) < most {
				var all []elements.Content
				var got []T
				if all, got, err = q.drain(c, view, min(batch, most-len(taken))); len(got) == 0 {
					return err
				}
				taken = append(taken, got...)
				for _, el := range all[:len(got)] {
					attempts = append(attempts, el.Attempt())
				}
			}
			return err
		})
	})
	q.traceTaken(ctx, attempts...)
	return taken, err
}

// drain takes up to n elements of a view, and returns what it has read, and the values of those at its beginning that it has taken. If
// there are none left, it returns none.
func (q *Queue[T]) drain(c *elements.Call, v *elements.View, n int) (all []elements.Content, values []T, err error) {
	var picks []*elements.Pick
	for len(picks) < n {
		p, _, err := v.Pop(nil)
		if err != nil {
			return nil, nil, err
		}
		if p == nil {
			break
		}
		picks = append(picks, p)
	}
	if len(picks) == 0 {
		return nil, nil, nil
	}
	if all, err = c.Read(picks...); err != nil {
		return nil, nil, err
	}
	values, err = q.take(c, all...)
	return all, values, err
}

// All yields the elements in order, also delayed and delivered ones, and leaves them there: those of some
// instant of the call, without the ones gone when it comes to them. After an element that cannot be decoded
// it goes on.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var rest []*elements.Pick
		err := q.made().raw.Run(ctx, "all", func(c *elements.Call) error {
			v, err := c.Look()
			if err == nil {
				rest = v.All()
			}
			return err
		})
		for err == nil && len(rest) > 0 {
			n := min(batch, len(rest))
			var some []elements.Content
			err = q.raw.Run(ctx, "all", func(c *elements.Call) (err error) {
				if some, err = c.Read(rest[:n]...); errors.Is(err, elements.ErrChanged) {
					err = nil
				}
				return err
			})
			for _, el := range some {
				v, wrong := q.decode(el)
				if !yield(v, q.at.Named("all", wrong)) {
					return
				}
			}
			rest = rest[n:]
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}
