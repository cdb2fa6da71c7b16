// Package zkphaser has a [Phaser]: a barrier whose parties may change between phases.
package zkphaser

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Phaser is java.util.concurrent's Phaser for many machines: a barrier for phase after phase, whose parties
// may change.
//
// Phases count from 0 to 2147483647, and again. A phaser that has terminated stays so: its phase is negative,
// no call waits, and no party is registered. A party is registered through one Phaser object and arrives
// through it. It belongs to the session in which it was registered, and is deregistered when that ends.
type Phaser struct {
	at        *session.Access
	onAdvance func(ctx context.Context, phase, registered int) bool
	terms     record.Terms[state]
	turns     *zksync.Mutex // the process that holds it runs onAdvance
	line      *queue.Queue  // see turn

	mu      sync.Mutex
	parties []*party
	lost    bool // parties were lost, and none has been registered since
	phase   int  // the newest that this object knows; -1 if it knows none
}

// party is one registration.
type party struct {
	name  string // of its node
	epoch *zkconn.Epoch
	at    int  // the phase at which it has to arrive next
	busy  bool // a call arrives for it

	// An arrival of the party got no answer. It may have been applied, or may yet be.
	unsure  bool
	leaving bool // that arrival, or one before it, also deregisters the party
}

// option is an option that only New takes.
type option struct {
	zksync.Option
	set func(*Phaser)
}

// WithOnAdvance makes the phaser call f when all parties have arrived, before any continues, like Java's
// onAdvance. If f returns true, the phaser terminates; without f it does when no party is left. All users
// must have such a function, or none.
//
// f runs once for each phase, in a process whose call has noticed the last arrival. If that process loses its
// session (cause zksync.ErrLost), another waiting call runs its f for the phase. If f panics, so does the
// call that started it.
func WithOnAdvance(f func(ctx context.Context, phase, registered int) bool) zksync.Option {
	return option{session.Misplaced("WithOnAdvance"), func(p *Phaser) { p.onAdvance = f }}
}

// New names a phaser.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Phaser {
	own, rest := session.Own[option](opts)
	p := &Phaser{phase: -1, at: session.NewAccess("zkphaser", (*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		o.set(p)
	}
	if p.at.Misuse() == nil {
		p.terms.Base, p.terms.ACL, p.terms.Type, p.terms.Keys = p.base(), p.at.ACL(), layout.Phaser, []string{"phase"}
		p.terms.First, p.terms.Check = p.first, p.check
		p.line = gate.Line(p.at.Queue("/turns", queue.KindLock), p.base(), p.base())
		p.turns = (*zksync.Mutex)((*share.Cohort)(zksync.NewMutex(s, path+"/action", rest...)).Part("zkphaser"))
	}
	return p
}

// made is p, which New has made. It panics with a zero or nil value.
func (p *Phaser) made() *Phaser {
	if p == nil || p.at == nil {
		panic(errs.Unmade("zkphaser", "a Phaser", "New"))
	}
	return p
}

var (
	errRemoved  = errs.Broken("the phaser", "its nodes were removed externally")
	errNoParty  = errs.Misuse("arrival of a party that is not registered here")
	errArrived  = errs.Misuse("all parties that are registered here have arrived at this phase")
	errDetached = fmt.Errorf("%w: the party was deregistered when its session ended: %w", zksync.ErrLost, zksync.ErrSessionExpired)
)

// known is n, or -1 if there is an error, so that no caller takes n for a number of phases or parties.
func known(n int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	return n, nil
}

// Register registers a party and returns the phase at which it has to arrive, negative if the phaser has
// terminated. While the phaser advances it waits. After an error no party is registered.
func (p *Phaser) Register(ctx context.Context) (phase int, err error) { return p.BulkRegister(ctx, 1) }

// BulkRegister registers n parties at the same phase, one after the other. If n is 0, it returns the phase.
func (p *Phaser) BulkRegister(ctx context.Context, n int) (phase int, err error) {
	if p.made(); n < 0 {
		return -1, p.at.Named("register", errs.Misuse("%d parties", n))
	}
	var t state
	err = p.at.Run(ctx, "register", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		t, err = p.register(ctx, e, n)
		return err
	})
	return known(t.number(), err)
}

// Arrive says that a party has arrived, and does not wait for the others. It returns the phase at which the
// party arrived, negative if the phaser has terminated. The last arrival advances the phaser, and waits for
// the function of [WithOnAdvance]. If the party was lost with its session, the error is zksync.ErrLost; then
// it may register again.
//
// If an error comes with a phase of -1, the call may be repeated: the party arrives once. Any other phase is
// that of the arrival, which has happened.
func (p *Phaser) Arrive(ctx context.Context) (phase int, err error) {
	phase, err = p.made().arrive(ctx, false, false)
	return phase, p.at.Named("arrive", err)
}

// ArriveAndDeregister is Arrive, and also deregisters the party.
func (p *Phaser) ArriveAndDeregister(ctx context.Context) (phase int, err error) {
	phase, err = p.made().arrive(ctx, true, false)
	return phase, p.at.Named("deregister", err)
}

// ArriveAndAwaitAdvance arrives, waits for the others, and returns the next phase, negative if the phaser has
// terminated. If it fails while it waits, the phase with the error is that of the arrival, for AwaitAdvance.
func (p *Phaser) ArriveAndAwaitAdvance(ctx context.Context) (phase int, err error) {
	phase, err = p.made().arrive(ctx, false, true)
	return phase, p.at.Named("arrive-and-await", err)
}

// AwaitAdvance waits until the phaser has advanced from phase, and returns its phase then, negative if it has
// terminated. If the phaser is in another phase, or phase is negative, it returns at once. A caller need not
// be a party. If ctx ends, the error says who is missing.
func (p *Phaser) AwaitAdvance(ctx context.Context, phase int) (next int, err error) {
	if phase < 0 {
		return phase, nil
	}
	var t state
	missing := ""
	err = p.made().at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if t, err = p.found(ctx, e); err != nil || t.Terminated || t.Phase != phase {
			return err
		}
		t, err = p.await(ctx, e, phase)
		missing = p.glance(ctx, e, phase)
		return err
	})
	return known(t.number(), p.at.Named("await-advance", record.Saying(err, missing)))
}

// ForceTermination terminates the phaser: all waiting calls return. If ctx ends, it is unknown whether it was
// terminated.
func (p *Phaser) ForceTermination(ctx context.Context) error {
	return p.made().at.Run(ctx, "terminate", p.terminate)
}

// Phase is the phaser's phase, negative if it has terminated.
func (p *Phaser) Phase(ctx context.Context) (int, error) {
	t, err := p.made().look(ctx, "phase")
	return known(t.number(), err)
}

// Terminated reports whether the phaser has terminated.
func (p *Phaser) Terminated(ctx context.Context) (bool, error) {
	t, err := p.made().look(ctx, "terminated")
	return t.Terminated, err
}

// RegisteredParties is the number of registered parties, in all processes. After the termination the numbers
// of parties mean nothing.
func (p *Phaser) RegisteredParties(ctx context.Context) (int, error) {
	unarrived, arrived, err := p.made().census(ctx, "registered")
	return known(unarrived+arrived, err)
}

// ArrivedParties is the number of registered parties that have arrived at the phase.
func (p *Phaser) ArrivedParties(ctx context.Context) (int, error) {
	_, arrived, err := p.made().census(ctx, "arrived")
	return known(arrived, err)
}

// UnarrivedParties is the number of registered parties that have not arrived at the phase.
func (p *Phaser) UnarrivedParties(ctx context.Context) (int, error) {
	unarrived, _, err := p.made().census(ctx, "unarrived")
	return known(unarrived, err)
}

// Attendance returns the owners of the parties that have arrived at the phase, and of those that have not;
// empty if the phaser has terminated. It is made of several reads.
func (p *Phaser) Attendance(ctx context.Context) (arrived, missing []zksync.Owner, err error) {
	err = p.made().inOnePhase(ctx, "attendance", func(ctx context.Context, e *zkconn.Epoch, t state) (bool, error) {
		if arrived, missing = nil, nil; t.Terminated {
			return true, nil
		}
		// First the parties that have still to arrive: one that arrives between the two reads is in both lists, and not in
		// neither. If the phaser advances in between, the lists do not belong together, and inOnePhase looks again.
		late, err := p.ownersIn(ctx, e, p.arrivals(t.Phase))
		if err != nil {
			return false, err
		}
		if arrived, err = p.ownersIn(ctx, e, p.arrivals(after(t.Phase))); err == nil {
			missing = late
		}
		return true, err
	})
	return arrived, missing, err
}
