package zkqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Queue is a queue of values in ZooKeeper: java.util.concurrent's BlockingQueue, DelayQueue and PriorityBlockingQueue
// for many machines, with acknowledgement. Elements outlive the processes that put them, and restarts of the servers.
//
// Smaller priorities go first, and among equal ones the order in which the servers took the elements. An element that
// was received and not acknowledged comes again at its place, with the next Attempt, after a Nack or when the
// session of its consumer has ended. Each element is acknowledged or taken at most once.
//
// Values travel as JSON, unless zksync.WithCodec gives another codec. An element that cannot be decoded is removed by
// the Take, Receive or Drain that meets it, which returns an error that names the node.
//
// A Queue is safe for use by many goroutines. Use one Queue for each path in a process: it remembers what it has read.
type Queue[T any] struct {
	at       *session.Access
	raw      *elements.Queue // of encoded values
	capacity int             // 0 if there is no bound

	mu   sync.Mutex
	room *elements.Room // what is known of a bounded queue; nil if nothing is
}

// option is an option that only New takes.
type option struct {
	zksync.Option
	capacity int
}

// WithCapacity bounds the number of elements, including those that are delayed or delivered and not yet acknowledged.
// All who use the queue must give the same number; otherwise their first call fails with zksync.ErrMisuse, as for a
// number below 1. A crash of a producer leaves no room taken or free that is not.
func WithCapacity(n int) zksync.Option { return option{session.Misplaced("WithCapacity"), n} }

// New names a queue by a path of its own, which is created when it is first needed. It does no I/O. The first call
// reports a malformed path, a nil session, or an option of holds (such as WithHandover) as zksync.ErrMisuse.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Queue[T] {
	own, rest := session.Own[option](opts)
	at, capacity := session.NewValueAccess((*session.Session)(s), path, rest), 0
	for _, o := range own {
		if capacity = o.capacity; capacity < 1 {
			at.Refuse(fmt.Errorf("%w: a queue of %d elements; it needs one at least", zksync.ErrMisuse, capacity))
		}
	}
	return &Queue[T]{at: at, raw: elements.New(at, capacity), capacity: capacity}
}

// made is q, which New has made. Of a zero or nil value it panics.
func (q *Queue[T]) made() *Queue[T] {
	if q == nil || q.at == nil {
		panic(errs.Unmade("a Queue", "New"))
	}
	return q
}

// again calls f until it returns another error than elements.ErrAgain. There is no pause at first, as often as free says.
func again(ctx context.Context, e *zkconn.Epoch, free int, f func() error) error {
	for pace := (node.Pace{Free: free}); ; {
		if err := f(); !errors.Is(err, elements.ErrAgain) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// inLine runs f, as again does, when the caller is the first in a line. f must be safe if another is the first as well: the
// node of the first may be removed by hand.
func inLine(ctx context.Context, e *zkconn.Epoch, line *queue.Queue, free int, f func() error) error {
	for pace := (node.Pace{Free: 1}); ; {
		t, err := line.Obtain(ctx, func(*queue.Ticket) {})
		if err == nil {
			err = inTurn(ctx, e, t, free, f)
		}
		if !errors.Is(err, errLine) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// errLine means that the caller's node in a line was removed, and that other callers are quicker.
var errLine = errors.New("the place in the line is gone")

// attempts is how often a call that does not wait for elements tries until it stands in line.
const attempts = 5

// persist calls f, which takes what there is and does not wait, until it returns another error than elements.ErrAgain. If
// others are quicker again and again, it stands in line: whoever lists the elements then stands behind it. But those ahead of
// it may wait for elements when there are none any more, and then f would return at once. So it leaves the line after a
// while, and calls f again. The while doubles each time, so its turn comes if there are elements all the time.
func (q *Queue[T]) persist(ctx context.Context, e *zkconn.Epoch, f func() error) error {
	for while := time.Second; ; while *= 2 {
		pace := node.Pace{Free: 2}
		for range attempts {
			if err := f(); !errors.Is(err, elements.ErrAgain) {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
		waiting, cancel := context.WithTimeout(ctx, while)
		t, err := q.raw.Takers.Obtain(waiting, func(*queue.Ticket) {})
		cancel()
		switch {
		case err == nil:
			if err = inTurn(ctx, e, t, 2, f); !errors.Is(err, errLine) {
				return err
			}
		case ctx.Err() != nil || waiting.Err() == nil:
			return err
		}
	}
}

// inTurn is inLine with the ticket of the first in line, until the place is lost: errLine.
func inTurn(ctx context.Context, e *zkconn.Epoch, t *queue.Ticket, free int, f func() error) error {
	if t.Epoch != e {
		t.Leave(0)
		return zkconn.ErrOver // what the caller knows is of another session
	}
	err := again(ctx, e, free, func() error {
		err := f()
		if errors.Is(err, elements.ErrAgain) && t.Over() && e.Cause() == nil {
			return errLine
		}
		return err
	})
	if err == nil {
		t.Leave(queue.Unawaited)
	} else {
		t.Leave(node.Grace)
	}
	return err
}

// decode decodes the value of an element.
func (q *Queue[T]) decode(c elements.Content) (T, error) {
	return codec.Decode[T](q.at.Settings.Codec, c.Data, c.Node)
}

// Len is the number of elements, including those that are delayed, and those that were delivered and are not yet
// acknowledged, as the leader of the servers knew it at some instant of the call. It blocks for the servers' answers.
// Errors are those of Take. It costs two requests.
func (q *Queue[T]) Len(ctx context.Context) (n int, err error) {
	err = q.made().raw.In(ctx, "len", func(ctx context.Context, e *zkconn.Epoch) error {
		n, err = q.raw.Len(ctx, e)
		return err
	})
	return n, err
}
