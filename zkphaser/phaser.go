package zkphaser

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

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

// Phaser is java.util.concurrent's Phaser for many machines: a barrier for phase after phase, whose parties may
// change. All Phasers with the same path are one. It is safe for use by many goroutines.
//
// Phases count from 0. A phase ends when all registered parties have arrived; then the phaser advances to the
// next one. After 2147483647 comes 0 again, as in Java. In a phaser that has terminated no call waits and no
// party is registered: its phase is negative, the last phase plus math.MinInt32. A phaser terminates for ever, so
// give each run of a job a path of its own.
//
// # Parties
//
// A party is registered through one Phaser object and arrives through that object: share the object among the
// goroutines of a process. The party stays registered until ArriveAndDeregister, also if an arrival or AwaitAdvance
// fails because ctx ended or the servers gave no clear answer. It belongs to the ZooKeeper session in which it was
// registered. If that session ends, because the process died or was cut off for too long, the party is
// deregistered, and the phase advances if all others have arrived. Calls that wait notice that as soon as the
// servers do, or within a third of the session timeout. If no call waits, the next call that waits or arrives
// notices it. If the party's process lives, its next arrival fails with zksync.ErrLost (and
// zksync.ErrSessionExpired); then it may register again.
//
// If somebody removes the nodes of the phaser by hand, that is no advance: calls that wait or arrive fail with
// zksync.ErrBroken, unless a Register has made the phaser again before they look, with phase 0.
type Phaser struct {
	path      string
	at        *session.Access
	onAdvance func(ctx context.Context, phase, registered int) bool
	terms     record.Terms[state]
	turns     *zksync.Mutex // the process that holds it runs onAdvance
	plain     atomic.Bool   // see node.Spec
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

// WithOnAdvance makes the phaser call f when all parties have arrived, before any party continues and before another
// is registered, like Java's onAdvance. registered is the number of registered parties. If f returns true, the phaser
// terminates. Without f a phaser terminates when no party is left.
//
// f runs once for each phase, in the process of the last arrival, or of a waiting call that noticed it first. It runs
// in a goroutine of its own, and to its end, also if the call that started it ends with its context. The context of f
// has that call's values, and ends with the session (cause zksync.ErrLost). In that case, or if the process dies,
// another waiting call runs its f for the same phase. So f must be safe to start again. If f panics, the phase does
// not advance, and the caller of the arrival gets the panic; another waiting call tries again. The process that runs
// f holds a lock meanwhile, below the phaser's path.
//
// All users of the phaser must have such a function, or none; otherwise their first call fails with zksync.ErrMisuse.
func WithOnAdvance(f func(ctx context.Context, phase, registered int) bool) zksync.Option {
	return option{session.Misplaced("WithOnAdvance"), func(p *Phaser) { p.onAdvance = f }}
}

// New names a phaser by a path of its own, which is created when it is first needed. It does no I/O.
// The first call reports a malformed path, a nil session, or one of the options WithHandover,
// WithLinger, WithMaxHold and WithAsyncUnlock as zksync.ErrMisuse.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Phaser {
	own, rest := session.Own[option](opts)
	p := &Phaser{path: path, phase: -1, at: session.NewAccess((*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		o.set(p)
	}
	if p.at.Misuse() == nil {
		p.terms.Base, p.terms.ACL, p.terms.Type, p.terms.Keys = p.base(), p.at.ACL(), layout.Phaser, []string{"phase"}
		p.terms.First, p.terms.Check = p.first, p.check
		p.line = gate.Line(p.at.Queue("/turns", queue.KindLock), p.base(), p.base())
		p.turns = (*zksync.Mutex)((*share.Cohort)(zksync.NewMutex(s, path+"/action", rest...)).Part())
	}
	return p
}

// made is p, which New has made. Of a zero or nil value it panics.
func (p *Phaser) made() *Phaser {
	if p == nil || p.at == nil {
		panic(errs.Unmade("a Phaser", "New"))
	}
	return p
}

var (
	errRemoved  = fmt.Errorf("%w: somebody has removed the nodes of the phaser", zksync.ErrBroken)
	errNoParty  = fmt.Errorf("%w: arrival of a party that is not registered here", zksync.ErrMisuse)
	errArrived  = fmt.Errorf("%w: all parties that are registered here have arrived at this phase", zksync.ErrMisuse)
	errDetached = fmt.Errorf("%w: the party was deregistered when its session ended: %w", zksync.ErrLost, zksync.ErrSessionExpired)
)

// Register registers a party and returns the phase at which it has to arrive. If the phaser has terminated, the
// phase is negative and no party is registered.
//
// It blocks until the servers confirm or ctx ends (the error wraps the context's error); while the phaser advances it
// waits. Disconnects and lost sessions delay it. If the session is closed, the error is zksync.ErrClosed. If its
// parameters contradict those of others, it is zksync.ErrMisuse. After an error no party is registered: a request
// under way is taken back, at once if the connection allows. It costs one request, two the first time.
func (p *Phaser) Register(ctx context.Context) (phase int, err error) { return p.BulkRegister(ctx, 1) }

// BulkRegister registers n parties at the same phase, one after the other. If n is 0, it returns the phase. Otherwise
// it is like Register. It costs n requests.
func (p *Phaser) BulkRegister(ctx context.Context, n int) (phase int, err error) {
	if p.made(); n < 0 {
		return -1, errs.Wrap("register", p.path, fmt.Errorf("%w: %d parties", zksync.ErrMisuse, n))
	}
	var t state
	err = p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		t, err = p.register(ctx, e, n)
		return err
	})
	return known(t.number(), err), errs.Wrap("register", p.path, err)
}

// Arrive says that a party has arrived, and does not wait for the other parties. It returns the phase at
// which the party arrived, negative if the phaser has terminated. The last arrival advances the phaser, and
// waits for the function of [WithOnAdvance].
//
// It blocks until the servers confirm or ctx ends (the error wraps the context's error). A disconnect delays it. If
// the session of the parties was lost, they are deregistered, and the error is zksync.ErrLost. If the session is
// closed, the error is zksync.ErrClosed. If no party is registered through this Phaser, or all of its parties have
// arrived at this phase, the error is zksync.ErrMisuse. If the servers give no clear answer several times after the
// arrival, the error satisfies [zksync.Ambiguous].
//
// If an error comes with a phase of -1, the call may be repeated: the party arrives once, whether or not the first
// call had arrived. Any other phase is that of the arrival, which has happened; a repetition would arrive at the next
// phase. It costs one request, the last arrival two.
func (p *Phaser) Arrive(ctx context.Context) (phase int, err error) {
	phase, err = p.made().arrive(ctx, false, false)
	return phase, errs.Wrap("arrive", p.path, err)
}

// ArriveAndDeregister is Arrive, and also deregisters the party: the next phases do not wait for it.
func (p *Phaser) ArriveAndDeregister(ctx context.Context) (phase int, err error) {
	phase, err = p.made().arrive(ctx, true, false)
	return phase, errs.Wrap("deregister", p.path, err)
}

// ArriveAndAwaitAdvance arrives, waits for the others, and returns the next phase, negative if the phaser has
// terminated. It blocks until the phaser advances or ctx ends. It fails like Arrive. If it fails while it waits, the
// phase with the error is that of the arrival, for AwaitAdvance. If the session ends while it waits, the party is
// deregistered and the error is zksync.ErrLost.
//
// A phase with n parties that wait costs 2n requests, and one event wakes each. A party that begins to wait when the phase
// is over already asks once more.
func (p *Phaser) ArriveAndAwaitAdvance(ctx context.Context) (phase int, err error) {
	phase, err = p.made().arrive(ctx, false, true)
	return phase, errs.Wrap("arrive-and-await", p.path, err)
}

// AwaitAdvance waits until the phaser has advanced from phase, and returns the phaser's phase then,
// negative if it has terminated. If the phaser is in another phase, it returns at once. A negative phase is
// returned as it is. A caller need not be a party.
//
// It blocks until the phaser advances or ctx ends (the error wraps the context's error, and says who is missing). It waits through disconnects
// and lost sessions. If the session is closed, the error is zksync.ErrClosed. If the servers give no clear answer
// several times, the error satisfies [zksync.Ambiguous]. It may be repeated.
func (p *Phaser) AwaitAdvance(ctx context.Context, phase int) (next int, err error) {
	if phase < 0 {
		return phase, nil
	}
	var t state
	missing := ""
	err = p.made().at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if t, err = p.found(ctx, e); err != nil || t.Terminated || t.Phase != phase {
			return err
		}
		t, err = p.await(ctx, e, phase)
		missing = p.glance(ctx, e, phase)
		return err
	})
	return known(t.number(), err), errs.Wrap("await-advance", p.path, record.Saying(err, missing))
}

// ForceTermination terminates the phaser: all waiting calls return. If the phaser has terminated, it does
// nothing. It blocks until the servers confirm or ctx ends. If ctx ends, the error wraps the context's error,
// and it is unknown whether the phaser was terminated. Disconnects and lost sessions delay it. If the session
// is closed, the error is zksync.ErrClosed.
func (p *Phaser) ForceTermination(ctx context.Context) error {
	return errs.Wrap("terminate", p.made().path, p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		return p.terminate(ctx, e)
	}))
}
