package zkphaser

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Phaser is java.util.concurrent's Phaser for many machines: a barrier for phase after phase,
// whose parties may change. Everybody who names the same path means the same phaser. It is safe
// for use by many goroutines.
//
// Phases count from 0. A phase is over when all registered parties have arrived; then the
// phaser advances to the next one. After 2147483647 comes 0 again, as in Java. A phaser that
// has terminated keeps nobody waiting and registers nobody: its phase is negative, the last one
// plus math.MinInt32. That is for ever, so give each run of a job a path of its own.
//
// # Parties
//
// A party is registered through one Phaser object and arrives through that one: share it among
// the goroutines of a process. It stays registered until ArriveAndDeregister, also when an arrival or AwaitAdvance
// fails because ctx ended or the servers' answers settled nothing. It belongs to the ZooKeeper session in which it was registered.
// If that ends, because the process died or was cut off for too long, the party is
// deregistered, and the phase advances if all others have arrived. Whoever waits notices that
// as soon as the servers do, or within a third of the session timeout; with nobody waiting the
// next one who waits, or arrives, does. The process whose party it was, if it lives, gets zksync.ErrLost
// (and zksync.ErrSessionExpired) from its next arrival, and registers again or gives up.
type Phaser struct {
	path      string
	at        *session.Access
	onAdvance func(ctx context.Context, phase, registered int) bool
	terms     record.Terms[phaserState]
	turns     *zksync.Mutex // whoever holds it runs onAdvance

	mu      sync.Mutex
	parties []*party
	lost    bool // parties were lost, and none has been registered since
	phase   int  // the last one heard of
}

// party is one registration.
type party struct {
	name  string
	epoch *zkconn.Epoch
	hook  *zkconn.LossHook
	gone  chan struct{} // closed when it is dropped
	at    int           // the phase at which it has to arrive next
	busy  bool          // somebody arrives for it

	// A call ended while the request was under way, so it may have arrived.
	unsure  bool
	leaving bool // and been deregistered

	lingers bool // a request that registers it may yet be applied, again
}

// option is one that only New takes.
type option struct {
	zksync.Option
	set func(*Phaser)
}

// WithOnAdvance has f called when all have arrived, before anybody goes on and before anybody
// else is registered: Java's onAdvance. registered is how many parties are left. If f returns
// true the phaser terminates. Without it a phaser terminates when no party is left.
//
// f runs once for each phase, in the process of whoever arrived last, or of one who waits if
// that was noticed there first. It runs in a goroutine of its own, and to its end even if the
// call that brought it about ends with its context. The context that f gets has that call's
// values and ends when the session does, cause zksync.ErrLost. In that case, or if the process
// dies, another one who waits calls his f for the same phase: make it safe to be begun again.
// If f panics the phase does not advance and the panic goes to the caller of the arrival;
// another one who waits tries again. Whoever runs f holds a lock meanwhile, which is below the phaser's path.
//
// All who use the phaser must have such a function, or none; otherwise the first call fails
// with zksync.ErrMisuse.
func WithOnAdvance(f func(ctx context.Context, phase, registered int) bool) zksync.Option {
	return option{session.Misplaced("WithOnAdvance"), func(p *Phaser) { p.onAdvance = f }}
}

// New names a phaser by a path of its own, which is created when first needed. It does no
// I/O. A malformed path or a nil session is reported by the first call as zksync.ErrMisuse.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Phaser {
	own, rest := session.Own[option](opts)
	p := &Phaser{path: path, at: session.NewAccess((*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		o.set(p)
	}
	if p.at.Misuse() == nil {
		p.terms.Base, p.terms.ACL, p.terms.Keys = p.base(), p.at.ACL(), []string{"phase"}
		p.terms.First, p.terms.Check = p.first, p.check
		p.turns = zksync.NewMutex(s, path+"/action", rest...)
	}
	return p
}

// turn is the state of a phaser.
type turn struct {
	phase int
	ended bool
}

// number is the phase as users see it.
func (t turn) number() int {
	if t.ended {
		return math.MinInt32 + t.phase
	}
	return t.phase
}

// number is what a call returns: nobody should take a phase for one that is none.
func number(t turn, err error) int {
	if err != nil {
		return -1
	}
	return t.number()
}

// after is the number of the next phase.
func after(phase int) int { return (phase + 1) & math.MaxInt32 }

// before reports whether phase a comes before b, of two that are near to each other.
func before(a, b int) bool {
	d := (b - a) & math.MaxInt32
	return d > 0 && d < 1<<30
}

// Errors of arrivals without a party.
var (
	errNoParty  = fmt.Errorf("%w: arrival of a party that is not registered here", zksync.ErrMisuse)
	errArrived  = fmt.Errorf("%w: all parties that are registered here have arrived at this phase", zksync.ErrMisuse)
	errDetached = fmt.Errorf("%w: the party was deregistered when its session ended: %w", zksync.ErrLost, zksync.ErrSessionExpired)
)

// Register registers a party and returns the phase at which it has to arrive; negative if the
// phaser has terminated, and nobody was registered. While the phaser advances it waits. It
// costs one request, two the first time.
//
// It blocks through disconnects and lost sessions, and fails when ctx ends (the error wraps the
// context's), the session is closed (zksync.ErrClosed), or parameters contradict those of
// others (zksync.ErrMisuse). After an error nobody is registered: if the request is under way
// it is taken back, at once if the connection allows.
func (p *Phaser) Register(ctx context.Context) (phase int, err error) { return p.BulkRegister(ctx, 1) }

// BulkRegister registers n parties at the same phase, like Register, one after the other: it costs n requests. With n of
// 0 it returns the phase.
func (p *Phaser) BulkRegister(ctx context.Context, n int) (phase int, err error) {
	if n < 0 {
		return -1, errs.Wrap("register", p.path, fmt.Errorf("%w: %d parties", zksync.ErrMisuse, n))
	}
	var t turn
	err = p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		t, err = p.register(ctx, e, n)
		return err
	})
	return number(t, err), errs.Wrap("register", p.path, err)
}

// Arrive says that a party has arrived, and does not wait for the others; the last one has the
// phaser advance, and waits for the function of [WithOnAdvance]. It returns the phase at which
// the party arrived, negative if the phaser has terminated. It costs one request, the last
// arrival two.
//
// Without a party that is registered through this Phaser, or if all that are have arrived at
// this phase, it fails with zksync.ErrMisuse, and with zksync.ErrLost if they were deregistered
// because their session ended. It also fails when ctx ends (the error wraps the context's), the
// session is closed (zksync.ErrClosed), or the servers' answers settle nothing again and again
// (see [zksync.Ambiguous]). If one of these comes with a phase of -1 the call may be repeated: whatever became
// of the first one, the party arrives once. Any other phase is that of the arrival, which stands; a
// repetition would arrive at the next one.
func (p *Phaser) Arrive(ctx context.Context) (phase int, err error) {
	phase, err = p.arrive(ctx, false, false)
	return phase, errs.Wrap("arrive", p.path, err)
}

// ArriveAndDeregister is Arrive, after which the party is not registered any more: the next
// phases do without it.
func (p *Phaser) ArriveAndDeregister(ctx context.Context) (phase int, err error) {
	phase, err = p.arrive(ctx, true, false)
	return phase, errs.Wrap("deregister", p.path, err)
}

// ArriveAndAwaitAdvance arrives, waits for the others, and returns the next phase, negative if
// the phaser has terminated. It fails like Arrive. If that is while it waits, the phase that it
// returns with the error is that of the arrival, for AwaitAdvance. If the session ends while it
// waits, the party is deregistered and the error is zksync.ErrLost.
//
// With n parties who wait a phase costs about 2n requests, and each is woken by one event.
func (p *Phaser) ArriveAndAwaitAdvance(ctx context.Context) (phase int, err error) {
	phase, err = p.arrive(ctx, false, true)
	return phase, errs.Wrap("arrive-and-await", p.path, err)
}

// AwaitAdvance waits until the phaser has advanced from phase, and returns the phase that it is
// in then, negative if it has terminated. If it is in another phase it returns at once; a
// negative phase is returned as it is. Anybody may wait, a party or not. It waits through
// disconnects and lost sessions and fails when ctx ends (the error wraps the context's), the
// session is closed (zksync.ErrClosed), or the servers' answers settle nothing again and again
// (see [zksync.Ambiguous]). It may be repeated.
func (p *Phaser) AwaitAdvance(ctx context.Context, phase int) (next int, err error) {
	if phase < 0 {
		return phase, nil
	}
	var t turn
	err = p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if t, err = p.learnNow(ctx, e); err != nil || t.ended || t.phase != phase {
			return err
		}
		t, err = p.await(ctx, e, phase)
		return err
	})
	return number(t, err), errs.Wrap("await-advance", p.path, err)
}

// ForceTermination terminates the phaser: whoever waits returns. It does nothing if it has
// terminated. It blocks through disconnects and lost sessions until the servers confirm it, ctx
// ends (the error wraps the context's, and it is unknown whether the phaser was terminated), or
// the session is closed (zksync.ErrClosed).
func (p *Phaser) ForceTermination(ctx context.Context) error {
	return errs.Wrap("terminate", p.path, p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		return p.terminate(ctx, e)
	}))
}
