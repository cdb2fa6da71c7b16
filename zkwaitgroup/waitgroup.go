package zkwaitgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// WaitGroup is sync.WaitGroup for many machines: a count of members in any processes, and a wait for all of them. All
// WaitGroups with the same path are one group.
//
// It has two forms, which may be mixed. Add, Done, Wait and Go are those of sync.WaitGroup. AddContext, DoneContext,
// WaitContext and GoContext return errors. It is safe for use by many goroutines. Those of one process should share
// one WaitGroup, so that it knows which members are its own.
//
// # Members and their deaths
//
// A member belongs to the ZooKeeper session that added it. If that session ends before the member is done, because
// its process died or was cut off for too long, the member is dead. No call waits for it any more, and
// [WaitGroup.WaitContext] returns a [DeadMembersError] that names it. So if the death of a worker is to be noticed,
// the worker must add itself, for example with Go.
//
// As with sync.WaitGroup a Done may come from any process. It is for the oldest member that this WaitGroup added
// and that is not done yet. If there is none, it is for a member of another WaitGroup, a living one if there is
// one. If a member of this process is dead and the process lives, its Done still counts, if the death was not
// reported before; after that it changes nothing.
//
// # Rounds
//
// A round of a group begins when the first member is added, and ends when no living member is left. The dead of a
// round are reported when it ends, by every WaitContext that waited in it, and by every later WaitContext until the
// next round begins. The next Add begins a round, also after deaths. [WaitGroup.Members] shows the dead earlier.
type WaitGroup struct {
	path string
	at   *session.Access
	line *queue.Queue
	id   string // names this WaitGroup where records say how many members others said are done

	mu      sync.Mutex
	asked   []*change // the queue of changes, oldest first, without those that are being written
	writing bool      // a goroutine writes them

	mine []*holding // its own records, oldest first; only the goroutine that writes uses it
}

// New names a group by a path of its own, which is created when it is first needed. It does no I/O. The first call
// reports a malformed path, a nil session, or one of the options WithHandover, WithLinger, WithMaxHold and WithAsyncUnlock as
// zksync.ErrMisuse; the methods of sync.WaitGroup's method set panic then.
func New(s *zksync.Session, path string, opts ...zksync.Option) *WaitGroup {
	g := &WaitGroup{path: path, at: session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...), id: node.NewUUID()}
	if g.at.Misuse() == nil {
		g.line = g.turns()
	}
	return g
}

// made is g, which New has made. Of a zero or nil value it panics.
func (g *WaitGroup) made() *WaitGroup {
	if g == nil || g.at == nil {
		panic(errs.Unmade("a WaitGroup", "New"))
	}
	return g
}

// errNegative is the error of a call that says that more members are done than are left.
var errNegative = fmt.Errorf("%w: negative WaitGroup counter", zksync.ErrMisuse)

// AddContext adds n members of this process. If n is negative, it does the same as -n calls of DoneContext. If fewer
// members than that are left, these are done, and the error is zksync.ErrMisuse.
//
// It blocks until the servers confirm or ctx ends (the error wraps the context's error). Disconnects
// and lost sessions delay it. If the session is closed, the error is zksync.ErrClosed. After an error
// no member was added: a request under way is taken back, at once if the connection allows. But a
// negative n is still sent, as with DoneContext.
//
// It costs one request. The first member of this WaitGroup costs a watch more, and the first of a round one or more
// requests that are refused. Calls that come while a request is under way share the next request. A negative n costs
// as many requests as there are WaitGroups whose members are done.
func (g *WaitGroup) AddContext(ctx context.Context, n int) error {
	_, err := g.made().change(ctx, n)
	return errs.Wrap("add", g.path, err)
}

// DoneContext says that one member is done. It blocks until the servers confirm or ctx ends. If ctx ends, also before
// the call, the error wraps the context's error, but the Done is still sent, exactly once, as soon as the connection
// allows. So do not repeat it. Disconnects and lost sessions delay it. If the session is closed, the error is
// zksync.ErrClosed. If no member is left, the error is zksync.ErrMisuse, and the count does not change; but if
// members died in the last round, the call may be for one of these, and returns nil. It costs one
// request if the member is one of this WaitGroup and not the last of the group.
func (g *WaitGroup) DoneContext(ctx context.Context) error {
	_, err := g.made().change(ctx, -1)
	return errs.Wrap("done", g.path, err)
}

// Add adds delta members. If delta is negative, it does the same as -delta calls of Done. It blocks until the servers
// confirm, without a bound, through disconnects and lost sessions. As with sync.WaitGroup it panics if fewer members
// than that are left; these are done. It panics with a *zksync.Error if the session was closed before, the path is malformed,
// or the servers refuse for good. If the session is closed meanwhile, it never returns. It costs the requests of AddContext.
func (g *WaitGroup) Add(delta int) { g.made().mustChange("add", delta) }

// Done says that one member is done. It blocks and panics like Add.
func (g *WaitGroup) Done() { g.made().mustChange("done", -1) }

// mustChange is a change whose errors are panics.
func (g *WaitGroup) mustChange(op string, delta int) {
	call := g.at.Call()
	_, err := g.change(context.Background(), delta)
	if errors.Is(err, errNegative) {
		panic("sync: negative WaitGroup counter") // in its words
	}
	call.End(errs.Wrap(op, g.path, err))
}

// Wait waits until no living member is left. Dead members count as done here; WaitContext reports them. It blocks
// without a bound, through disconnects and lost sessions. It panics with a *zksync.Error if the session was closed before,
// the path is malformed, or the servers refuse for good. If the session is closed meanwhile, it never returns. It costs the requests of WaitContext.
func (g *WaitGroup) Wait() {
	call := g.made().at.Call()
	err := g.WaitContext(context.Background())
	var dead *DeadMembersError
	if !errors.As(err, &dead) {
		call.End(err)
	}
}

// Go adds a member and calls f in a new goroutine. When f returns, the member is done. It blocks and panics like Add.
// As with sync.WaitGroup, f must not panic. If the session is closed while f runs, the member dies.
func (g *WaitGroup) Go(f func()) {
	g.Add(1)
	go g.run(f)
}

// run calls f for a member. If f panics, the process ends, and the member dies
// with it: run does not say that it is done.
func (g *WaitGroup) run(f func()) {
	defer func() {
		// recover tells a panic from the end of f and from runtime.Goexit.
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

// GoContext adds a member like AddContext, and then calls f like Go. The context of f ends with ctx, and when the
// member is dead (cause zksync.ErrLost). f must not panic.
func (g *WaitGroup) GoContext(ctx context.Context, f func(ctx context.Context)) error {
	c, err := g.made().change(ctx, 1)
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
