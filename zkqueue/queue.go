package zkqueue

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Queue is java.util.concurrent's BlockingQueue, DelayQueue and PriorityBlockingQueue for many machines, with
// acknowledgement. Use one Queue for each path in a process: it remembers what it has read.
//
// Elements of equal priority keep the order of their Puts. An element that was received and not acknowledged
// returns at its place after a Nack, or when its consumer's session has ended. Each element is acknowledged
// or taken at most once. The Take, Receive or Drain that meets an element which cannot be decoded removes it.
type Queue[T any] struct {
	at       *session.Access
	raw      *elements.Queue // of encoded values
	capacity int             // 0 if there is no bound

	takers, putters line

	mu   sync.Mutex
	room *elements.Room // what is known of a bounded queue; nil if nothing is
}

// option is an option that only New takes.
type option struct {
	zksync.Option
	capacity int
}

// WithCapacity bounds the number of elements, also delayed and delivered ones. The bound stays exact when a
// producer crashes.
func WithCapacity(n int) zksync.Option { return option{session.Misplaced("WithCapacity"), n} }

// New names a queue. With zksync.WithMaxHold a delivery is given up after that time, and its element comes again: a
// consumer that hangs keeps none.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Queue[T] {
	own, rest := session.Own[option](opts)
	at, capacity := session.NewValueAccess("zkqueue", (*session.Session)(s), path, rest, "WithMaxHold"), 0
	for _, o := range own {
		if capacity = o.capacity; capacity < 1 {
			at.Refuse(errs.Misuse("a queue of %d elements; it needs one at least", capacity))
		}
	}
	raw := elements.New(at, capacity)
	return &Queue[T]{at: at, raw: raw, capacity: capacity, takers: line{raw.Takers, 2}, putters: line{raw.Putters, 1}}
}

// made is q, which New has made. For a zero or nil value it panics.
func (q *Queue[T]) made() *Queue[T] {
	if q == nil || q.at == nil {
		panic(errs.Unmade("zkqueue", "a Queue", "New"))
	}
	return q
}

// decode decodes the value of an element.
func (q *Queue[T]) decode(c elements.Content) (T, error) {
	return codec.Decode[T](q.at.Settings.Codec, c.Data, c.Node)
}

// Len is the number of elements, also delayed and delivered ones.
func (q *Queue[T]) Len(ctx context.Context) (n int, err error) {
	err = q.made().raw.Run(ctx, "len", func(c *elements.Call) error {
		n, err = c.Len()
		return err
	})
	return n, err
}
