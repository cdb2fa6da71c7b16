package zkqueue

import (
	"context"
	"errors"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Take removes the first element, and returns it. When it returns, the element is gone: if this process fails
// before it has done its work, the work is lost. Receive is for elements that must not get lost.
//
// It blocks until there is an element that is neither delayed nor delivered to somebody else. Those who wait are served
// in the order in which they came. If ctx ends, the error wraps the context's error, and no element was taken, unless
// the error satisfies zksync.Ambiguous: then the first element may be lost. That happens only if ctx ends while the
// request that removes an element is under way, and the servers do not answer within 50 ms more. Otherwise Take returns
// the element that it has removed, also after the end of ctx. It waits through disconnects and lost sessions; if the
// session is lost while that request is under way, the error satisfies zksync.Ambiguous, too. If the session is closed,
// the error is zksync.ErrClosed; if somebody has removed nodes of the queue, zksync.ErrBroken. An element that cannot
// be decoded is removed, and the error names its node.
//
// It costs two requests for each element that an earlier listing of the object has shown, and four more if there is no
// such listing. A Take that waits makes no requests while nothing changes; of those who wait, only the first is woken.
func (q *Queue[T]) Take(ctx context.Context) (v T, err error) {
	err = q.in(ctx, "take", func(ctx context.Context, e *zkconn.Epoch) error {
		return q.next(ctx, e, func(c content) error { return q.take(ctx, e, c, &v) })
	})
	return v, err
}

// TryTake is Take if there is an element now. Otherwise it returns false: there was none at some instant of the call.
// It does not stand in line.
func (q *Queue[T]) TryTake(ctx context.Context) (v T, ok bool, err error) {
	err = q.in(ctx, "try-take", func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{Free: 2}); ; {
			p, _, there, err := q.first(ctx, e)
			if err == nil && !there {
				return nil
			}
			if err == nil {
				err = q.attempt(ctx, e, p, func(c content) error { return q.take(ctx, e, c, &v) })
			}
			if !errors.Is(err, errTaken) && !errors.Is(err, errAgain) {
				ok = err == nil
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	return v, ok, err
}

// take removes an element. It is decoded before, so that nothing can fail afterwards; what cannot be decoded is
// removed all the same, and v is an error then.
func (q *Queue[T]) take(ctx context.Context, e *zkconn.Epoch, c content, v *T) error {
	value, undecodable := codec.Decode[T](q.at.Settings.Codec, c.data, q.shown(c.name))
	if err := q.remove(ctx, e, c); err != nil {
		return err
	}
	*v = value
	return undecodable
}

// remove deletes elements that nobody has claimed, all or none. The error is errTaken if one of them has changed.
func (q *Queue[T]) remove(ctx context.Context, e *zkconn.Epoch, all ...content) error {
	var ops []any
	for _, c := range all {
		ops = append(ops, q.free(c)...)
		ops = append(ops, &zk.DeleteRequest{Path: q.dir("elements") + "/" + c.name, Version: c.version})
	}
	_, made, err := q.apply(ctx, e, ops...)
	if err == nil && made || record.Conflict(err) {
		return errTaken
	}
	return err
}

// Peek returns the first element that could be taken now, and leaves it there. Another process may take it at any time.
// It blocks for the servers' answers; errors are those of Take, but an element that cannot be decoded stays. It costs
// four requests.
func (q *Queue[T]) Peek(ctx context.Context) (v T, ok bool, err error) {
	err = q.in(ctx, "peek", func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{Free: 2}); ; {
			l, err := q.look(ctx, e)
			if err != nil {
				return err
			}
			q.mu.Lock()
			p, _, there, err := l.pop(q.time)
			q.mu.Unlock()
			if err == nil && !there {
				return nil
			}
			var c content
			if err == nil {
				c, err = q.get(ctx, e, p)
			}
			if err == nil {
				v, err = codec.Decode[T](q.at.Settings.Codec, c.data, q.shown(c.name))
				ok = err == nil
			}
			if !errors.Is(err, errTaken) && !errors.Is(err, errAgain) {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	return v, ok, err
}

// batch is how many elements are read or removed together.
const batch = 64

// Drain takes up to most elements that are there, in order, and does not wait for more. It returns those that it has
// taken, also together with an error. What is said of a Take that was disturbed holds for up to 64 elements, which it
// removes together. An element that cannot be decoded is removed and ends it with an error. It does not stand in line.
// It costs a request for each element, one more for each 64, and three for each listing.
func (q *Queue[T]) Drain(ctx context.Context, most int) (taken []T, err error) {
	err = q.in(ctx, "drain", func(ctx context.Context, e *zkconn.Epoch) error {
		q.forget() // what it removes is not in the way of the others of this object, but in their view
		for pace := (node.Pace{Free: 2}); len(taken) < most; {
			v, err := q.look(ctx, e)
			if err != nil {
				return err
			}
			for err == nil && len(taken) < most {
				var got []T
				if got, err = q.drain(ctx, e, v, min(batch, most-len(taken))); len(got) == 0 && err == nil {
					return nil
				}
				taken = append(taken, got...)
			}
			if err == nil || !errors.Is(err, errTaken) && !errors.Is(err, errAgain) {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	return taken, err
}

// drain takes up to n elements of a view. If there are none left, it returns none.
func (q *Queue[T]) drain(ctx context.Context, e *zkconn.Epoch, v *view, n int) (values []T, err error) {
	var picks []pick
	for len(picks) < n {
		q.mu.Lock()
		p, _, ok, err := v.pop(q.time)
		q.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if len(picks) > 0 {
			p.order = -1 // the first one checks it for all
		}
		picks = append(picks, p)
	}
	if len(picks) == 0 {
		return nil, nil
	}
	all, err := q.getAll(ctx, e, picks)
	if err != nil {
		return nil, err
	}
	if len(all) < len(picks) {
		return nil, errTaken
	}
	var undecodable error
	for i, c := range all {
		value, err := codec.Decode[T](q.at.Settings.Codec, c.data, q.shown(c.name))
		if err != nil {
			all, undecodable = all[:i+1], err
			break
		}
		values = append(values, value)
	}
	if err := q.remove(ctx, e, all...); err != nil {
		return nil, err
	}
	return values, undecodable
}

// getAll reads elements, all at once. It leaves out those that are gone.
func (q *Queue[T]) getAll(ctx context.Context, e *zkconn.Epoch, picks []pick) (all []content, err error) {
	paths := make([]string, len(picks))
	for i, p := range picks {
		paths[i] = q.dir("elements") + "/" + p.name
	}
	err = e.GetEach(ctx, paths, func(i int, c zkconn.Content) error {
		all = append(all, content{picks[i], c.Data, c.Stat.Version})
		return nil
	})
	return all, err
}

// All yields the elements in order, including those that are delayed or delivered and not yet acknowledged, and
// leaves them there. It shows what was there at some instant of the call, without the elements that are gone when it
// comes to them. The elements may be taken while it runs. For an element that cannot be decoded it
// yields the error that names its node, and goes on. Another error ends it; errors are those of Peek.
// It costs three requests, and one for each element.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var v *view
		var rest []element
		err := q.in(ctx, "all", func(ctx context.Context, e *zkconn.Epoch) (err error) {
			if v, err = q.look(ctx, e); err == nil {
				rest = v.all
			}
			return err
		})
		var zero T
		for err == nil && len(rest) > 0 {
			var some []content
			n := min(batch, len(rest))
			picks := make([]pick, n)
			for i, el := range rest[:n] {
				picks[i].element = el
			}
			err = q.in(ctx, "all", func(ctx context.Context, e *zkconn.Epoch) (err error) {
				some, err = q.getAll(ctx, e, picks)
				return err
			})
			for _, c := range some {
				value, wrong := codec.Decode[T](q.at.Settings.Codec, c.data, q.shown(c.name))
				if !yield(value, errs.Wrap("all", q.path, wrong)) {
					return
				}
			}
			rest = rest[n:]
		}
		if err != nil {
			yield(zero, err)
		}
	}
}
