package zkqueue

import (
	"context"
	"errors"
	"iter"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Take removes the first element, and returns it. When it returns, the element is gone: if this process fails
// before it has done its work, the work is lost. Receive is for elements that must not get lost.
//
// It blocks until there is an element that is neither delayed nor delivered to somebody else. Those who wait are served
// in the order in which they came. Where several sessions take at the same moments, order is approximate: docs/queue.md. If ctx ends, the error wraps the context's error, and no element was taken, unless
// the error satisfies zksync.Ambiguous: then the first element may be lost. That happens only if ctx ends while the
// request that removes an element is under way, and the servers do not answer within 50 ms more. Otherwise Take returns
// the element that it has removed, also after the end of ctx. It waits through disconnects and lost sessions; if the
// session is lost while that request is under way, the error satisfies zksync.Ambiguous, too. If the session is closed,
// the error is zksync.ErrClosed; if somebody has removed nodes of the queue, zksync.ErrBroken. An element that cannot
// be decoded is removed, and the error names its node.
//
// It costs two requests for each element that an earlier listing of the object has shown, one more for each that others have taken
// since, and four if there is no such listing. A Take that waits makes no requests while nothing changes; of those who wait, only the first is woken.
func (q *Queue[T]) Take(ctx context.Context) (v T, err error) {
	err = q.made().raw.InNew(ctx, "take", func(ctx context.Context, e *zkconn.Epoch, made bool) error {
		return q.next(ctx, e, made, func(c elements.Content) error { return q.takeOne(ctx, e, c, &v) })
	})
	return v, err
}

// TryTake is Take if there is an element now. Otherwise it returns false: there was none at some instant of the call.
// It stands in line only if others were quicker several times, and not while there is no element.
func (q *Queue[T]) TryTake(ctx context.Context) (v T, ok bool, err error) {
	err = q.made().raw.In(ctx, "try-take", func(ctx context.Context, e *zkconn.Epoch) error {
		s := q.raw.Search(e)
		return q.persist(ctx, e, func() error {
			p, err := s.Any(ctx)
			if err == nil && p != nil {
				err = q.attempt(ctx, e, s, p, func(c elements.Content) error { return q.takeOne(ctx, e, c, &v) })
				ok = err == nil
			}
			return err
		})
	})
	return v, ok, err
}

func (q *Queue[T]) takeOne(ctx context.Context, e *zkconn.Epoch, c elements.Content, v *T) error {
	values, err := q.take(ctx, e, c)
	if err == nil {
		*v = values[0]
	}
	return err
}

// take removes elements. They are decoded before, so that nothing can fail afterwards. The first one that cannot be decoded
// is removed all the same, and those behind it stay.
func (q *Queue[T]) take(ctx context.Context, e *zkconn.Epoch, all ...elements.Content) (values []T, err error) {
	var undecodable error
	for i, c := range all {
		v, err := q.decode(c)
		if err != nil {
			all, undecodable = all[:i+1], err
			break
		}
		values = append(values, v)
	}
	if err := q.raw.Remove(ctx, e, all...); err != nil {
		return nil, err
	}
	return values, undecodable
}

// Peek returns the first element that could be taken now, and leaves it there. Another process may take it at any time.
// It blocks for the servers' answers; errors are those of Take, but an element that cannot be decoded stays. It costs
// four requests, and more while others take elements: see TryTake.
func (q *Queue[T]) Peek(ctx context.Context) (v T, ok bool, err error) {
	err = q.made().raw.In(ctx, "peek", func(ctx context.Context, e *zkconn.Epoch) error {
		return q.persist(ctx, e, func() error {
			view, err := q.raw.Look(ctx, e)
			if err != nil {
				return err
			}
			p, _, err := view.Pop(nil)
			if p == nil {
				return err
			}
			all, err := q.raw.Read(ctx, e, p)
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

// Drain takes up to most elements that are there, in order, and does not wait for more. It returns those that it has
// taken, also together with an error. What is said of a Take that was disturbed holds for up to 64 elements, which it
// removes together. An element that cannot be decoded is removed and ends it with an error. It stands in line like TryTake.
// It costs a request for each element, one more for each 64, and three for each listing.
func (q *Queue[T]) Drain(ctx context.Context, most int) (taken []T, err error) {
	err = q.made().raw.In(ctx, "drain", func(ctx context.Context, e *zkconn.Epoch) error {
		q.raw.Forget() // what it removes is not in the way of the others of this object, but in their view
		return q.persist(ctx, e, func() error {
			if len(taken) >= most {
				return nil
			}
			view, err := q.raw.Look(ctx, e)
			for err == nil && len(taken) < most {
				var got []T
				if got, err = q.drain(ctx, e, view, min(batch, most-len(taken))); len(got) == 0 {
					return err
				}
				taken = append(taken, got...)
			}
			return err
		})
	})
	return taken, err
}

// drain takes up to n elements of a view. If there are none left, it returns none.
func (q *Queue[T]) drain(ctx context.Context, e *zkconn.Epoch, v *elements.View, n int) ([]T, error) {
	var picks []*elements.Pick
	for len(picks) < n {
		p, _, err := v.Pop(nil)
		if err != nil {
			return nil, err
		}
		if p == nil {
			break
		}
		picks = append(picks, p)
	}
	if len(picks) == 0 {
		return nil, nil
	}
	all, err := q.raw.Read(ctx, e, picks...)
	if err != nil {
		return nil, err
	}
	return q.take(ctx, e, all...)
}

// All yields the elements in order, including those that are delayed or delivered and not yet acknowledged, and
// leaves them there. It shows what was there at some instant of the call, without the elements that are gone when it
// comes to them. The elements may be taken while it runs. For an element that cannot be decoded it
// yields the error that names its node, and goes on. Another error ends it; errors are those of Peek.
// It costs three requests, and one for each element.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var rest []*elements.Pick
		err := q.made().raw.In(ctx, "all", func(ctx context.Context, e *zkconn.Epoch) error {
			v, err := q.raw.Look(ctx, e)
			if err == nil {
				rest = v.All()
			}
			return err
		})
		for err == nil && len(rest) > 0 {
			n := min(batch, len(rest))
			var some []elements.Content
			err = q.raw.In(ctx, "all", func(ctx context.Context, e *zkconn.Epoch) (err error) {
				if some, err = q.raw.Read(ctx, e, rest[:n]...); errors.Is(err, elements.ErrAgain) {
					err = nil
				}
				return err
			})
			for _, c := range some {
				v, wrong := q.decode(c)
				if !yield(v, errs.Wrap("all", q.at.Path, wrong)) {
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
