package zkqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
)

// DeadElement is an element that [Queue.Work] has given up.
type DeadElement struct {
	ID       string // as in [Delivery.ID]
	Data     []byte // the value, as the codec has written it
	Err      string // the last error, panic or decoding error; at most 2 KB of it
	Attempts int
	Enqueued time.Time // by the servers' clock, as Died
	Died     time.Time
}

// Dead are the dead letters of a queue. They do not count as elements, and no consumer lists them.
type Dead struct {
	at      *session.Access
	raw     *elements.Queue
	redrive func(context.Context, string) error
}

// Dead returns the dead letters.
func (q *Queue[T]) Dead() *Dead {
	return &Dead{q.made().at, q.raw, q.redrive}
}

// All yields the dead letters in the order in which their elements were put: those of some instant of the call, without the
// ones gone when it comes to them.
func (d *Dead) All(ctx context.Context) iter.Seq2[DeadElement, error] {
	return func(yield func(DeadElement, error) bool) {
		var rest []string
		err := d.raw.Run(ctx, "dead", func(c *elements.Call) (err error) {
			rest, err = c.Letters()
			return err
		})
		for err == nil && len(rest) > 0 {
			n := min(batch, len(rest))
			var some []elements.Letter
			err = d.raw.Run(ctx, "dead", func(c *elements.Call) (err error) {
				some, err = c.ReadLetters(rest[:n]...)
				return err
			})
			for i := 0; err == nil && i < len(some); i++ {
				l := some[i]
				if !yield(DeadElement{l.ID, l.Data, l.Why, l.Attempts, time.UnixMilli(l.Enqueued), l.Died}, nil) {
					return
				}
			}
			rest = rest[n:]
		}
		if err != nil {
			yield(DeadElement{}, err)
		}
	}
}

// Len is the number of dead letters.
func (d *Dead) Len(ctx context.Context) (n int, err error) {
	err = d.raw.Run(ctx, "dead", func(c *elements.Call) error {
		n, err = c.CountLetters()
		return err
	})
	return n, err
}

// Redrive puts the element at the end of the queue, with its priority, as a new one: it has another ID, and its next attempt is the
// first. In a bounded queue it waits for room. In one transaction the dead letter is gone. Without such a dead letter the error is
// zksync.ErrNotFound. What [Queue.Put] says of errors holds for it.
func (d *Dead) Redrive(ctx context.Context, id string) error { return d.redrive(ctx, id) }

func (q *Queue[T]) redrive(ctx context.Context, id string) error {
	err := q.raw.Run(ctx, "redrive", func(c *elements.Call) error {
		if !mayBeID(id) {
			return notFound(elements.ErrNoLetter, id)
		}
		l, err := c.ReadLetter(id)
		if err == nil {
			err = q.insert(c, &elements.Draft{Data: [][]byte{l.Data}, Priority: l.Priority, Letter: id})
		}
		return notFound(err, id)
	})
	if err == nil {
		q.trace(ctx, session.Delivery{Event: put})
	}
	return err
}

// Remove removes a dead letter for good. If there is none, the error is zksync.ErrNotFound.
func (d *Dead) Remove(ctx context.Context, id string) error {
	return d.raw.Run(ctx, "remove", func(c *elements.Call) error {
		if !mayBeID(id) {
			return notFound(elements.ErrNoLetter, id)
		}
		return notFound(c.RemoveLetter(id), id)
	})
}

// mayBeID reports whether a text may be an ID: it is the name of a node.
func mayBeID(id string) bool {
	return id != "" && id != "." && id != ".." && !strings.ContainsAny(id, "/\x00")
}

func notFound(err error, id string) error {
	if errors.Is(err, elements.ErrNoLetter) {
		return fmt.Errorf("%w: the dead letter %s", errs.ErrNotFound, errs.Quote(id))
	}
	return err
}
