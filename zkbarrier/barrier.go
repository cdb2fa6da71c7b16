package zkbarrier

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Barrier lets a fixed number of parties wait for each other, again and again, in any processes:
// java.util.concurrent's CyclicBarrier for many machines. Each time all parties arrive is a generation.
//
// A generation breaks when a party gives up (its context ends), when the session of a waiting party ends, and when
// the action fails. Then the barrier is broken for all its waiters and all later parties, until a [Barrier.Reset].
// With [Tolerant] the barrier does not break when a party gives up or dies.
//
// A party exists only while it waits. The barrier does not notice the death of a party between two steps:
// the others wait for it until the first of their contexts ends, and then all of them get
// zksync.ErrBroken at once. So give Await a context that ends. If a death between two steps must be
// noticed by itself, use a zkphaser.Phaser (its parties are registered, and it does not wait for a dead
// one) or a [DoubleBarrier] (its Leave does not wait for the dead).
//
// A Barrier is safe for use by many goroutines; each call of Await is a party of its own.
type Barrier struct {
	path     string
	parties  int
	tolerant bool
	action   func(context.Context) error
	at       *session.Access
	misuse   error
	line     *queue.Queue               // see turn
	terms    record.Terms[barrierState] // the base node as far as known; every arrival makes the servers check that
}

// option is an option that only NewBarrier takes.
type option struct {
	zksync.Option
	set func(*Barrier)
}

func newOption(name string, set func(*Barrier)) zksync.Option {
	return option{session.Misplaced(name), set}
}

// WithAction makes the last party to arrive run action before any party leaves. The context of the action ends with
// that of the Await that runs it. It also ends if the generation is broken meanwhile (cause [BrokenError]), and if
// the session is lost (cause zksync.ErrLost).
//
// If action returns an error or panics, the barrier is broken. That party's Await returns the error or panics, and
// all others get zksync.ErrBroken. The action runs once in each generation; if the process that runs it dies, the
// generation is broken. A [Tolerant] barrier cannot have an action: the first call fails with zksync.ErrMisuse.
//
// The action belongs to this object. Give all parties the same action, because any party may be the last.
func WithAction(action func(ctx context.Context) error) zksync.Option {
	return newOption("WithAction", func(b *Barrier) { b.action = action })
}

// Tolerant keeps the barrier from breaking when a waiting party gives up or dies: the others continue to wait for
// another party in its place. A Reset still breaks it. Either all parties use this option, or none: the servers keep
// the choice of the first party, and the calls of parties with another choice fail with zksync.ErrMisuse.
func Tolerant() zksync.Option { return newOption("Tolerant", func(b *Barrier) { b.tolerant = true }) }

// maxParties keeps the transaction in which all parties leave below what the servers accept, 1 MB, if
// the path is short. For long paths see fit.
const maxParties = 2000

// NewBarrier names a barrier of a number of parties by a path of its own, which is created when it is first needed.
// The first process that uses the barrier stores that number there. All others must give the same number; otherwise
// their first call fails with zksync.ErrMisuse. NewBarrier does no I/O. The first call reports a malformed path,
// parties below 1 or above 2000, a nil session, or one of the options WithHandover, WithLinger, WithMaxHold and WithAsyncUnlock as
// zksync.ErrMisuse. It also reports more parties than can leave in one request: the servers accept 1 MB for the paths
// of all parties, each up to 160 bytes longer than the barrier's path with the chroot.
func NewBarrier(s *zksync.Session, path string, parties int, opts ...zksync.Option) *Barrier {
	own, rest := session.Own[option](opts)
	b := &Barrier{path: path, parties: parties, at: session.NewAccess((*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		o.set(b)
	}
	b.misuse = b.at.Misuse()
	switch {
	case b.misuse != nil:
	case parties < 1 || parties > maxParties:
		b.misuse = fmt.Errorf("%w: a barrier of %d parties; it can have 1 to %d", zksync.ErrMisuse, parties, maxParties)
	case b.tolerant && b.action != nil:
		b.misuse = fmt.Errorf("%w: a tolerant barrier cannot have an action", zksync.ErrMisuse)
	default:
		b.terms.Base, b.terms.ACL, b.terms.Type, b.terms.Keys = b.at.Full(path), b.at.ACL(), layout.Barrier, []string{"parties", "generation"}
		b.terms.First = func() (barrierState, []string) {
			return barrierState{Parties: parties, Tolerant: b.tolerant}, []string{b.dir(0), b.open(0)}
		}
		b.terms.Check = b.check
		b.line = gate.Line(b.at.Queue("/turns", queue.KindLock), b.base(), b.base())
		b.misuse = b.fit()
	}
	return b
}

// made is b, which NewBarrier has made. Of a zero or nil value it panics.
func (b *Barrier) made() *Barrier {
	if b == nil || b.at == nil {
		panic(errs.Unmade("a Barrier", "NewBarrier"))
	}
	return b
}

// Await arrives, and waits until all parties have arrived. It returns the index of this party's arrival as in Java:
// Parties()-1 for the first, 0 for the last. With an error the index is -1. If more parties arrive than the barrier
// has, the late ones are in the next generation.
//
// It blocks until all have arrived, the barrier breaks, or ctx ends. A disconnect keeps the party's place in the
// order of arrival. If the party's session is lost while it waits, the others count it as dead, and its Await fails
// with zksync.ErrBroken. In a Tolerant barrier it arrives again in its next session. The error wraps
//   - the context's error, if ctx ends first. That breaks the barrier, unless the party had not arrived yet or the
//     barrier is Tolerant. If ctx ends at the moment at which all have arrived, and the servers say so at once, the
//     call succeeds. A ctx that has ended before the call breaks nothing. The text says who has arrived;
//   - zksync.ErrBroken, if the barrier is broken: a [BrokenError] says why, and who had arrived. A generation in which
//     all have arrived never counts as broken, however late its parties hear of that;
//   - the action's error, if this party ran it;
//   - zksync.ErrSessionExpired, if the session was lost, and so many generations have ended since that it is
//     unknown whether this party was counted;
//   - zksync.ErrClosed, if the session is closed.
//
// An arrival costs one request if what the object knows of the barrier is still true. The last party makes two more.
// Every other party makes two more: one to wait, and one to read how the generation ended.
func (b *Barrier) Await(ctx context.Context) (index int, err error) {
	return newBarrierCall(b.made()).await(ctx)
}

// await runs the call, in as many sessions as it takes, and returns its result.
func (c *barrierCall) await(ctx context.Context) (index int, err error) {
	b := c.b
	defer c.turn.Leave()
	if b.misuse != nil {
		return -1, errs.Wrap("await", b.path, b.misuse)
	}
	if err := b.at.In(ctx, c.run); err != nil {
		return -1, errs.Wrap("await", b.path, record.Saying(err, c.breach.present(b.parties)))
	}
	return c.index, errs.Wrap("await", b.path, c.err)
}

// Parties is the number of parties of the barrier. It sends no request.
func (b *Barrier) Parties() int { return b.made().parties }

// Waiting is the number of parties that wait; 0 if the barrier is broken. It is what the leader of the servers knew
// at some instant of the call. It blocks for the servers' answers, until ctx ends (the error wraps the context's
// error) or the session is closed (zksync.ErrClosed). Like Attendance and Broken it creates nothing on the servers,
// and fails with zksync.ErrMisuse if the path has another kind of barrier.
func (b *Barrier) Waiting(ctx context.Context) (n int, err error) {
	err = b.made().in(ctx, "waiting", func(ctx context.Context, e *zkconn.Epoch) error {
		_, parties, err := b.waiting(ctx, e)
		n = len(parties)
		return err
	})
	return n, err
}

// waiting lists the parties that wait, in the order of arrival. It creates nothing on the servers.
func (b *Barrier) waiting(ctx context.Context, e *zkconn.Epoch) (st barrierState, parties []arrival, err error) {
	v, _, err := b.terms.Ask(ctx, e)
	if err != nil || v.T.Broken {
		return v.T, nil, err
	}
	g, err := b.gathering(ctx, e, v.T.Generation)
	return v.T, g.parties[:min(len(g.parties), b.parties)], err
}

// Attendance returns the owners of the parties that have arrived and wait, in the order of arrival, and
// those of the missing. A party is not known before it arrives, so the owners of the missing are empty;
// their number is that of the parties still to come. Both lists are empty if the barrier is broken. It
// blocks and fails like Waiting, and also reads the node of each party. While other parties come and go, the
// barrier may never have had exactly that state.
func (b *Barrier) Attendance(ctx context.Context) (arrived, missing []zksync.Owner, err error) {
	err = b.made().in(ctx, "attendance", func(ctx context.Context, e *zkconn.Epoch) error {
		arrived, missing = nil, nil
		st, parties, err := b.waiting(ctx, e)
		var names []string
		for _, a := range parties {
			names = append(names, a.name)
		}
		if err == nil {
			arrived, err = record.Owners(ctx, e, b.dir(st.Generation), names)
		}
		if err == nil && !st.Broken {
			missing = make([]zksync.Owner, b.parties-len(arrived))
		}
		return err
	})
	return arrived, missing, err
}

// Broken reports whether the barrier is broken, as the leader of the servers knew it at some instant of
// the call. It blocks and fails like Waiting.
func (b *Barrier) Broken(ctx context.Context) (broken bool, err error) {
	err = b.made().in(ctx, "broken", func(ctx context.Context, e *zkconn.Epoch) error {
		v, _, err := b.terms.Ask(ctx, e)
		broken = v.T.Broken
		return err
	})
	return broken, err
}

// Reset makes the barrier usable again. All its waiters get zksync.ErrBroken, also while the action
// runs. It blocks until the servers confirm or ctx ends. If ctx ends, the error wraps the context's
// error, and it is unknown whether the barrier was reset. Disconnects and lost sessions delay it. If the
// session is closed, the error is zksync.ErrClosed.
func (b *Barrier) Reset(ctx context.Context) error {
	from := int64(-1)
	return b.made().in(ctx, "reset", func(ctx context.Context, e *zkconn.Epoch) error {
		return b.reset(ctx, e, &from)
	})
}

// in runs f in the present session, and again in the next one if that session ends.
func (b *Barrier) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	if b.misuse != nil {
		return errs.Wrap(op, b.path, b.misuse)
	}
	return errs.Wrap(op, b.path, b.at.In(ctx, f))
}
