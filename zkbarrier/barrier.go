package zkbarrier

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Barrier lets a fixed number of parties wait for each other, again and again, wherever they
// are: j.u.c.'s CyclicBarrier for many machines. Each time all have come is a generation.
//
// The generation is broken, for all who wait in it and for everybody who comes later, until a
// [Barrier.Reset], when a party gives up waiting (its context ends), when its session ends
// although it still waits, and when the action fails. See [Tolerant] for the other way.
//
// A party exists only while it waits. One that dies between two steps is not known to the barrier: the others wait for
// it until the first of their contexts ends, and then all of them get zksync.ErrBroken at once. So give Await a
// context that ends. Where a death between two steps must be noticed by itself, use a zkphaser.Phaser (the parties are
// registered, and one that dies is not waited for any more) or a [DoubleBarrier] (whose Leave does not wait for the dead).
//
// A Barrier is safe for use by many goroutines; each call of Await is a party of its own.
type Barrier struct {
	path     string
	parties  int
	tolerant bool
	action   func(context.Context) error
	at       *session.Access
	plain    atomic.Bool
	misuse   error
	terms    record.Terms[barrierState] // every arrival has the servers check what is known of them
}

// option is one that only NewBarrier takes.
type option struct {
	zksync.Option
	set func(*Barrier)
}

func newOption(name string, set func(*Barrier)) zksync.Option {
	return option{session.Misplaced(name), set}
}

// WithAction has the last party to arrive run action before anybody leaves. Its context ends with
// that of the Await that runs it, and also (the cause is zksync.ErrBroken) when the
// generation is broken meanwhile, and (zksync.ErrLost) when the session is lost.
//
// If action returns an error or panics, the barrier is broken: the error is that party's, or the
// panic goes on there, and all others get zksync.ErrBroken. The action runs once in each
// generation; a generation whose runner died is broken. A [Tolerant] barrier cannot have one: the first call fails with
// zksync.ErrMisuse.
//
// The action is this object's: give all parties the same, since any may be the last.
func WithAction(action func(ctx context.Context) error) zksync.Option {
	return newOption("WithAction", func(b *Barrier) { b.action = action })
}

// Tolerant keeps the barrier whole when a party gives up or dies while it waits: the others
// go on waiting, for somebody to take its place. A Reset breaks it all
// the same. All parties must use it or none: the servers keep what was said first, and
// whoever says otherwise gets zksync.ErrMisuse.
func Tolerant() zksync.Option { return newOption("Tolerant", func(b *Barrier) { b.tolerant = true }) }

// maxParties keeps the transaction in which all leave below what the servers accept, 1 MB, if the path is
// short. See fit for long paths.
const maxParties = 2000

// NewBarrier names a barrier of a number of parties by a path of its own, which is created when
// first needed. The first who uses it stores that number there; everybody else must say the
// same, else the first call fails with zksync.ErrMisuse. It does no I/O. A malformed path, parties
// below 1 or above 2000, or a nil session is reported by the first call as zksync.ErrMisuse; and so are more parties
// than the servers let go at once, which is 1 MB for the paths of all parties, each some 120 bytes longer than the
// barrier's, chroot included.
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
		b.terms.Base, b.terms.ACL, b.terms.Keys = b.at.Full(path), b.at.ACL(), []string{"parties", "generation"}
		b.terms.First = func() (barrierState, []string) {
			return barrierState{Parties: parties, Tolerant: b.tolerant}, []string{b.dir(0), b.open(0)}
		}
		b.terms.Check = b.check
		b.misuse = b.fit()
	}
	return b
}

// Await waits until as many parties have arrived as the barrier has, and returns the index
// of this one's arrival as in j.u.c.: Parties()-1 for the first, 0 for the last. With an error
// the index is -1.
//
// It waits through disconnects. It fails with an error that wraps
//   - the context's, when ctx ends first. Unless it had not arrived yet, or the barrier is
//     Tolerant, that breaks the barrier. If ctx ends at the very moment at which all have come, and the
//     servers can say so at once, the call succeeds. A ctx that has ended before the call breaks nothing;
//   - zksync.ErrBroken, when the barrier is broken or is being broken. A generation in which all have
//     come is never seen as broken, however late its parties hear of it;
//   - the action's error, if this party ran it;
//   - zksync.ErrSessionExpired, when the session was lost, and the barrier has gone on so far since
//     that it is unknown whether this party was counted;
//   - zksync.ErrClosed, when the session is closed.
//
// A party whose session is lost while it waits has died, for the others: it gets
// zksync.ErrBroken. A Tolerant barrier takes it in again under its next session.
//
// If more parties come than the barrier has, those who come too late for one generation are in the next.
//
// Arriving is one request when what the object knows of the barrier is still true. The last
// one makes two more, everybody else two: it waits with one, and reads how the generation ended with the other.
func (b *Barrier) Await(ctx context.Context) (index int, err error) {
	return newBarrierCall(b).await(ctx)
}

func (c *barrierCall) await(ctx context.Context) (index int, err error) {
	b := c.b
	if err := b.in(ctx, "await", c.run); err != nil {
		return -1, err
	}
	return c.index, errs.Wrap("await", b.path, c.err)
}

// Parties is the number of parties that it takes. It asks nobody.
func (b *Barrier) Parties() int { return b.parties }

// Waiting is how many parties wait; 0 if the barrier is broken. It is what the leader of
// the servers knew at some instant of the call. Like the other questions it makes nothing on the servers, and fails
// with zksync.ErrMisuse if the barrier is there and is another one.
func (b *Barrier) Waiting(ctx context.Context) (n int, err error) {
	err = b.in(ctx, "waiting", func(ctx context.Context, e *zkconn.Epoch) error {
		_, parties, err := b.waiting(ctx, e)
		n = len(parties)
		return err
	})
	return n, err
}

// waiting lists who waits, without making the barrier.
func (b *Barrier) waiting(ctx context.Context, e *zkconn.Epoch) (st barrierState, parties []arrival, err error) {
	v, _, err := b.terms.Ask(ctx, e)
	if err != nil || v.T.Broken {
		return v.T, nil, err
	}
	g, err := b.gathering(ctx, e, v.T.Generation)
	return v.T, g.parties[:min(len(g.parties), b.parties)], err
}

// Attendance tells who has arrived and waits, in the order of arrival, and who is missing. Nobody knows a party before it
// arrives, so the owners of the missing are empty: there are as many as have still to come. A broken barrier has nobody.
// It blocks and fails like Waiting, and reads the node of each party besides; it need never have been exactly so while
// others come and go.
func (b *Barrier) Attendance(ctx context.Context) (arrived, missing []zksync.Owner, err error) {
	err = b.in(ctx, "attendance", func(ctx context.Context, e *zkconn.Epoch) error {
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

// Broken reports whether the barrier is broken, as the leader of the servers knew it at
// some instant of the call.
func (b *Barrier) Broken(ctx context.Context) (broken bool, err error) {
	err = b.in(ctx, "broken", func(ctx context.Context, e *zkconn.Epoch) error {
		v, _, err := b.terms.Ask(ctx, e)
		broken = v.T.Broken
		return err
	})
	return broken, err
}

// Reset makes the barrier usable again, with nobody waiting: whoever waits gets zksync.ErrBroken,
// also while the action runs. It blocks through disconnects until the servers confirm it,
// ctx ends (the error wraps the context's, and it is unknown whether it was done), or the session
// is closed (zksync.ErrClosed).
func (b *Barrier) Reset(ctx context.Context) error {
	from := int64(-1)
	return b.in(ctx, "reset", func(ctx context.Context, e *zkconn.Epoch) error {
		return b.reset(ctx, e, &from)
	})
}

// in runs f in the session of the moment, and again in the next one.
func (b *Barrier) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	if b.misuse != nil {
		return errs.Wrap(op, b.path, b.misuse)
	}
	return errs.Wrap(op, b.path, b.at.In(ctx, f))
}
