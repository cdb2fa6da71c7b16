// Package zkwaitgroup has a [WaitGroup]: sync.WaitGroup for members of many processes, which may die.
package zkwaitgroup

// Each WaitGroup has one record of its members in each of its sessions, and beside it an ephemeral node while a member is not
// done. So members without that node are dead, and a round is over when there is no such node. See round.go for the nodes,
// batch.go for what is written, change.go for how a change is made once, end.go for the end of a round, and report.go for its dead.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// WaitGroup is sync.WaitGroup for many machines: a count of members in any processes, and a wait for all of
// them. The goroutines of one process should share one, so that it knows which members are its own. Add,
// Done, Wait and Go are those of sync.WaitGroup; the other forms return errors.
//
// A member belongs to the session that added it, and dies if that session ends before the member is done.
type WaitGroup struct {
	path string
	at   *session.Access
	line *queue.Queue
	id   string // names this WaitGroup where records say how many members others said are done

	mu      sync.Mutex
	asked   []*batch // to be written, oldest first
	writing bool     // a goroutine writes

	mine []*own // its own records, oldest first; only the goroutine that writes uses it
}

// New names a group.
func New(s *zksync.Session, path string, opts ...zksync.Option) *WaitGroup {
	g := &WaitGroup{path: path, at: session.NewAccess("zkwaitgroup", (*session.Session)(s), path, opts).Without(session.OfHolds...), id: node.NewUUID()}
	if g.at.Misuse() == nil {
		g.line = g.turns()
	}
	return g
}

// made is g, which New has made. It panics with a zero or nil value.
func (g *WaitGroup) made() *WaitGroup {
	if g == nil || g.at == nil {
		panic(errs.Unmade("zkwaitgroup", "a WaitGroup", "New"))
	}
	return g
}

var (
	errNegative = errs.Misuse("negative WaitGroup counter") // more members are done than are left
	errRemoved  = errs.Broken("the wait group", "nodes of it were removed externally; remove the rest, too")
)

// AddContext adds n members of this process. After an error no member was added. If n is negative, it is -n
// calls of DoneContext.
func (g *WaitGroup) AddContext(ctx context.Context, n int) error {
	_, err := g.made().change(ctx, n)
	return errs.Wrap("zkwaitgroup", "add", g.path, err)
}

// DoneContext says that one member is done: the oldest of this WaitGroup, or else a living member of another
// one. If ctx ends, the Done is still sent, exactly once: do not repeat it. A Done for a member that has died
// changes nothing. If no member is left, the error is zksync.ErrMisuse, unless members died in the last
// round.
func (g *WaitGroup) DoneContext(ctx context.Context) error {
	_, err := g.made().change(ctx, -1)
	return errs.Wrap("zkwaitgroup", "done", g.path, err)
}

// Add is AddContext without an end. It panics if delta is negative and fewer members than that are left;
// these are done.
func (g *WaitGroup) Add(delta int) { g.made().mustChange("add", delta) }

// Done says that one member is done. It panics like Add.
func (g *WaitGroup) Done() { g.made().mustChange("done", -1) }

// mustChange is a change whose errors are panics.
func (g *WaitGroup) mustChange(op string, delta int) {
	call := g.at.Call()
	_, err := g.change(context.Background(), delta)
	if errors.Is(err, errNegative) {
		panic("sync: negative WaitGroup counter") // in its words
	}
	call.End(errs.Wrap("zkwaitgroup", op, g.path, err))
}

// Go adds a member and calls f in a new goroutine. When f returns, the member is done. f must not panic. If
// the session is closed while f runs, the member dies.
func (g *WaitGroup) Go(f func()) {
	g.Add(1)
	go g.run(f)
}

// run calls f for a member. If f panics, the process ends, and the member dies with it: run does not say that it is done.
func (g *WaitGroup) run(f func()) {
	defer func() {
		// recover distinguishes a panic from the end of f and from runtime.Goexit.
		if x := recover(); x != nil {
			panic(x)
		}
		_, err := g.change(context.Background(), -1) // also after runtime.Goexit
		if err != nil && !errors.Is(err, zksync.ErrClosed) {
			panic(errs.Wrap("zkwaitgroup", "done", g.path, err))
		}
	}()
	f()
}

// GoContext is Go with the errors of AddContext. The context of f ends with ctx, and when the member is dead
// (cause zksync.ErrLost).
func (g *WaitGroup) GoContext(ctx context.Context, f func(ctx context.Context)) error {
	e, err := g.made().change(ctx, 1)
	if err != nil {
		return errs.Wrap("zkwaitgroup", "add", g.path, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	hook := e.OnOver(func(error) { cancel(zksync.ErrLost) })
	go g.run(func() {
		defer cancel(nil)
		defer hook.Stop()
		f(ctx)
	})
	return nil
}

// Member is what the servers know of the members that one WaitGroup added in one session.
type Member struct {
	zksync.Owner
	// N is how many of them are not done.
	N int
	// Dead: their session has ended.
	Dead bool
}

func (m Member) String() string {
	if m.N > 1 {
		m.Name = strings.TrimPrefix(fmt.Sprint(m.Name, ", ", m.N, " members"), ", ")
	}
	if m.Owner == (zksync.Owner{}) {
		return "unknown host"
	}
	return m.Owner.String()
}
