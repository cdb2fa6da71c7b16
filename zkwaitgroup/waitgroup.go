package zkwaitgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// WaitGroup is sync.WaitGroup for many machines: a count of members, who are at work in any
// process, and a wait for all of them. Everybody who names the same path means the same group.
//
// Add, Done, Wait and Go are those of sync.WaitGroup. AddContext, DoneContext, WaitContext and
// GoContext return errors. Both forms may be mixed. It is safe for use by many goroutines;
// those of one process should share one WaitGroup, which then knows whose members are its own.
//
// # Members and their deaths
//
// A member belongs to the ZooKeeper session of whoever added it. If that session ends before
// the member is done, because its process died or was cut off for too long, the member is dead:
// it is not waited for any more, and [WaitGroup.WaitContext] reports it, with a
// [DeadMembersError] that names it. So a worker whose death is to be noticed adds itself, with
// Go for instance.
//
// As with sync.WaitGroup a Done may come from anywhere. It is that of the oldest member that
// this WaitGroup added and that is not done yet. Without one it is that of somebody else's
// member, a living one if there is any. When a member of this process is dead although the
// process lives, its Done still counts, if nobody was told of the death before; after that it
// changes nothing.
//
// # Rounds
//
// A round of a group begins when the first member is added and ends when no living one is left.
// The dead of a round are reported when it ends, by every WaitContext that waited in it, and by
// every one that begins later, until the next round begins. The next Add begins it: a group
// that has had deaths is as usable as any other. [WaitGroup.Members] shows them earlier.
type WaitGroup struct {
	path string
	at   *session.Access
	id   string // names what its Done calls took of other members

	mu      sync.Mutex
	asked   []*change // oldest first, up to those that are being written
	writing bool      // there is a goroutine that writes them

	mine []*holding // oldest first; it belongs to the goroutine that writes
}

// New names a group by a path of its own, which is created when first needed. It does
// no I/O. A malformed path or a nil session is reported by the first call as zksync.ErrMisuse;
// the calls of sync.WaitGroup's method set panic then.
func New(s *zksync.Session, path string, opts ...zksync.Option) *WaitGroup {
	return &WaitGroup{path: path, at: session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...), id: node.NewUUID()}
}

// errNegative means that fewer members than that are left.
var errNegative = fmt.Errorf("%w: negative WaitGroup counter", zksync.ErrMisuse)

// AddContext adds n members in the name of this process, or, if n is negative, does what so many
// calls of DoneContext do, all or nothing. It costs one request; the first member of this
// WaitGroup a watch besides, and the first of a round one or more requests that are refused.
// Calls that come while one is under way share the next request.
//
// It blocks through disconnects and lost sessions until the servers confirm it, ctx ends (the
// error wraps the context's), or the session is closed (zksync.ErrClosed). After an error no
// member was added: if the request is under way it is taken back, at once if the connection
// allows. A negative n stands nevertheless, as with DoneContext.
func (g *WaitGroup) AddContext(ctx context.Context, n int) error {
	_, err := g.change(ctx, n)
	return errs.Wrap("add", g.path, err)
}

// DoneContext says that one member is done. It costs one request if the member is one of this
// WaitGroup and not the last of the group.
//
// With nobody left who could be done it fails with zksync.ErrMisuse, and the count does not
// change. It also fails when ctx ends (the error wraps the context's) or the session is closed
// (zksync.ErrClosed). When ctx ends the call is over, but not the Done: it is said for certain,
// once, as soon as the connection allows, so do not repeat it. That is also so if ctx had ended
// before.
func (g *WaitGroup) DoneContext(ctx context.Context) error {
	_, err := g.change(ctx, -1)
	return errs.Wrap("done", g.path, err)
}

// Add adds delta members, or does what so many calls of Done do if it is negative, all or
// nothing. It waits for ever, through disconnects and lost sessions. Like sync.WaitGroup's it
// panics if fewer members than that are left. It panics with a *zksync.Error if the session is
// closed, the path is malformed, or the servers refuse for good, since there is no error to
// return.
func (g *WaitGroup) Add(delta int) { g.mustChange("add", delta) }

// Done says that one member is done. It waits and panics like Add.
func (g *WaitGroup) Done() { g.mustChange("done", -1) }

func (g *WaitGroup) mustChange(op string, delta int) {
	_, err := g.change(context.Background(), delta)
	if errors.Is(err, errNegative) {
		panic("zkwaitgroup: negative WaitGroup counter")
	}
	if err != nil {
		panic(errs.Wrap(op, g.path, err))
	}
}

// Wait waits until no living member is left. It waits for ever, through disconnects and lost
// sessions, but not for the dead: they count as done here, and WaitContext tells of them. It
// panics with a *zksync.Error if the session is closed, the path is malformed, or the servers
// refuse for good.
func (g *WaitGroup) Wait() {
	err := g.WaitContext(context.Background())
	var dead *DeadMembersError
	if err != nil && !errors.As(err, &dead) {
		panic(err)
	}
}

// Go adds a member, calls f in a new goroutine, and says that the member is done when f
// returns. It waits and panics like Add. As with sync.WaitGroup, f must not panic. If the
// session is closed while f runs, the member dies with it.
func (g *WaitGroup) Go(f func()) {
	g.Add(1)
	go g.run(f)
}

// run calls f for a member. If it panics, which ends the process, the member dies with it:
// nobody is told that it was done.
func (g *WaitGroup) run(f func()) {
	defer func() {
		if x := recover(); x != nil {
			panic(x)
		}
		_, err := g.change(context.Background(), -1) // also after runtime.Goexit
		if err != nil && !errors.Is(err, zksync.ErrClosed) {
			panic(errs.Wrap("done", g.path, err))
		}
	}()
	f()
}

// GoContext adds a member like AddContext, and then does what Go does. The context of f ends
// with ctx, and when the member is dead, cause zksync.ErrLost. f must not panic.
func (g *WaitGroup) GoContext(ctx context.Context, f func(ctx context.Context)) error {
	c, err := g.change(ctx, 1)
	if err != nil {
		return errs.Wrap("add", g.path, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	hook := c.epoch.OnLost(func(error) { cancel(zksync.ErrLost) })
	go g.run(func() {
		defer cancel(nil)
		defer hook.Stop()
		f(ctx)
	})
	return nil
}
