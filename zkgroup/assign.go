package zkgroup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/subtree"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Assign divides items among the members of the group that call it, and runs f for those of this member, each in a
// goroutine of its own. Items are any strings; they are told apart by a 64-bit hash.
//
// Each item runs under a lease of its own, that of a zksync.Mutex. So it never has two owners, through any change of
// the members. f's context is made of ctx; it also ends when the item is to move (with an error that is not ErrLost), and when the lease is lost
// (cause zksync.ErrLost). f should return soon then, with an error: until f has returned, the next owner waits for the lease. The items are divided by
// rendezvous hashing. So when a member leaves, its items move, and no others; and when one comes, items move to it only.
// When a process dies, its items run elsewhere as soon as its session has ended.
//
// If f returns nil, its item is done, even if f's context has ended meanwhile. It is not run again by this member, nor by others, as long as
// somebody works on the round: all who call Assign at one time work on one round, and it ends when the last of them has returned, or
// has died. A member whose session ended goes on with its round in the next session.
//
// If f returns an error, its item is given up. It is tried again after a pause, which grows from a second to a minute, by the
// member whose failure with it is the oldest, or who has not failed with it. The other items go on. [WithItemErrors] hears of it. An error after the end of f's
// context counts as no failure: that is how f gives an item up. [Stop] ends Assign; so does, with an error, a
// call of runtime.Goexit, as by the FailNow of a test. A panic of f ends the process.
//
// The members may have different lists. An item that is in some lists only is divided among their members.
//
// Assign blocks until ctx ends; then it returns nil, once f has returned for all items and their leases are given up. After Close of the session it
// returns zksync.ErrClosed, after Leave of m zksync.ErrReleased. Duplicate items are zksync.ErrMisuse, and so is m if
// it is of another group, or in an Assign already. If an item was done and the session ended before that was recorded, the error satisfies
// zksync.Ambiguous. Disconnects and lost sessions are waited out. After ctx has ended, Assign waits for f, and then at most for the session timeout, longer only if the connection
// is lost again and again, or the servers refuse to record that an item is done.
//
// It costs three requests at the beginning, and one for each of the other workers; then one when a worker comes, and none
// when one leaves. Each item costs five, and three when it moves on undone; the first time some more. A failure costs two more here, and one at each of the
// others. A waiting worker makes no traffic.
func (g *Group) Assign(ctx context.Context, m *Membership, items []string, f func(ctx context.Context, item string, l *zksync.Lease) error, opts ...AssignOption) error {
	a, err := g.checked().newAssignment(m, items, f, opts)
	if err == nil {
		err = a.run(ctx)
	}
	return errs.Wrap("assign", g.at.Path, err)
}

// assignment is one call of Assign.
type assignment struct {
	g      *Group
	m      *Membership
	f      func(ctx context.Context, item string, l *zksync.Lease) error
	told   func(item string, attempt int, err error) // of WithItemErrors; nil without it
	shared func(items []string)                      // of WithShare; nil without it
	w      *rounds.Worker
	p      *presence.Presence // of the worker's node
	user   context.Context    // that of the caller
	fail   context.CancelCauseFunc

	mu      sync.Mutex
	failed  map[uint64]int // what w tells others of: the newest attempt of each item with which this member has failed
	parts   *rounds.Division
	known   bool // the workers are known
	divided bool // shared was called, with share
	share   []string
	here    *presence.Stay
	entered *zkconn.Epoch // the session of the newest worker's node, perhaps before here is told of it
	round   string        // the round of that
	over    error         // why nothing begins any more
	items   []*item
	running sync.WaitGroup
}

// item is an item of this member's list.
type item struct {
	name     string
	lock     *zksync.Mutex
	cancel   context.CancelCauseFunc // nil if it is not to run here
	ended    chan struct{}           // of the newest run
	done     bool                    // by this member, or for all it knows
	recorded bool
	attempt  int       // the newest one that has failed, here or elsewhere
	after    time.Time // when to try again
}

var (
	errMoved    = errors.New("the item belongs to another member")
	errNotThere = fmt.Errorf("the member is not in the group: %w", errs.ErrLost)
)

func (g *Group) newAssignment(m *Membership, items []string, f func(context.Context, string, *zksync.Lease) error, opts []AssignOption) (*assignment, error) {
	if err := g.at.Misuse(); err != nil {
		return nil, err
	}
	switch {
	case m == nil || f == nil:
		return nil, fmt.Errorf("%w: Assign without a membership, or without a function", errs.ErrMisuse)
	case m.g.at.Session != g.at.Session || m.g.at.Path != g.at.Path:
		return nil, fmt.Errorf("%w: the membership is that of another group", errs.ErrMisuse)
	}
	a := &assignment{g: g, m: m, f: f, w: rounds.NewWorker(g.rounds(), escape(m.id), items), parts: rounds.NewDivision(items), failed: map[uint64]int{}}
	for _, o := range opts {
		o(a)
	}
	seen := make(map[string]bool, len(items))
	for i, name := range items {
		if seen[name] {
			return nil, fmt.Errorf("%w: the item %s is there twice", errs.ErrMisuse, errs.Quote(name))
		}
		seen[name] = true
		path := strings.TrimSuffix(g.at.Path, "/") + "/" + layout.Group + "/items/" + itemName(name)
		lock := (*share.Cohort)(zksync.NewMutex((*zksync.Session)(g.at.Session), path, g.opts...)).Part()
		a.items = append(a.items, &item{name: name, lock: (*zksync.Mutex)(lock), recorded: true})
		if i > 0 && a.w.List[i] == a.w.List[i-1] {
			return nil, fmt.Errorf("%w: two items have the same hash", errs.ErrMisuse)
		}
	}
	if 8*len(items)+1024 > record.MaxTransaction {
		return nil, fmt.Errorf("%w: %d items are too many", errs.ErrMisuse, len(items))
	}
	a.p = &presence.Presence{At: g.at, Node: a.w.Node, Data: a.w.Data(nil), Enter: a.enter, Apply: g.applyOn, Exit: a.w.Exit, Lifetime: g.lifetime, Changed: a.present, Taken: a.taken}
	return a, nil
}

func (a *assignment) taken(here bool) error {
	if here {
		return fmt.Errorf("%w: the member %s is in an Assign already", errs.ErrMisuse, errs.Quote(a.m.id))
	}
	return taken(a.m.id)(false)
}

// run is Assign.
func (a *assignment) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	a.user = ctx
	ctx, cancel := a.g.at.Bounded(ctx)
	defer cancel()
	ctx, a.fail = context.WithCancelCause(ctx)
	defer a.fail(nil)
	defer context.AfterFunc(a.m.p.Leaving(), func() { a.fail(errs.ErrReleased) })()
	if err := a.p.Start(); err != nil {
		return err
	}
	go func() {
		<-a.p.Done()
		a.fail(a.p.Err())
	}()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		a.fail(a.follow(ctx))
	}()
	<-ctx.Done()
	err := context.Cause(ctx)
	a.settle(func() { a.over = err })
	a.running.Wait()
	<-followed
	// The servers may refuse for ever while the session lives. Then the node is removed later, which another Assign waits for.
	leaving, stop := context.WithTimeout(context.Background(), a.g.at.Session.Timeout())
	defer stop()
	_ = a.p.Leave(leaving)
	ended := new(stopped)
	if a.user.Err() != nil && errors.Is(err, context.Cause(a.user)) || errors.As(err, &ended) && ended.err == nil {
		err = nil
	}
	return errors.Join(err, a.unrecorded())
}

// unrecorded is the error of items that are done, but perhaps not for others.
func (a *assignment) unrecorded() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, it := range a.items {
		if it.done && !it.recorded {
			return errs.MarkAmbiguous(fmt.Errorf("%w: the item %s is done, which may not be recorded", errs.ErrSessionExpired, errs.Quote(it.name)))
		}
	}
	return nil
}

// enter makes the worker's node in a session in which the member has joined.
func (a *assignment) enter(ctx context.Context, e *zkconn.Epoch, data []byte) error {
	joined, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.p.Leaving(), cancel)()
	st, err := a.m.p.There(joined)
	if err != nil {
		return err
	}
	if st.Epoch != e {
		return zkconn.ErrOver
	}
	if err := a.g.known(ctx, e); err != nil {
		return err
	}
	round, err := a.w.Enter(ctx, a.p.Leaving(), e, data)
	if err != nil {
		return err
	}
	a.mu.Lock()
	var late []*item
	for _, it := range a.items {
		if round != a.round { // the one of before has ended, and what it recorded with it
			it.recorded = false
		}
		if it.done && !it.recorded {
			late = append(late, it)
		}
	}
	a.entered, a.round = e, round
	a.mu.Unlock()
	for _, it := range late {
		if err := a.w.SetDone(ctx, e, round, itemName(it.name)); err != nil {
			return err
		}
		a.mu.Lock()
		it.recorded = true
		a.mu.Unlock()
	}
	return nil
}

// present is told when the worker's node comes and goes. When it is gone, so is the round, perhaps; and everything that runs ends
// before the next session begins, so nothing is asked of an earlier round.
func (a *assignment) present(st *presence.Stay) { a.settle(func() { a.here = st }) }

// follow follows the workers until ctx ends.
func (a *assignment) follow(ctx context.Context) error {
	dir := a.w.Working() + "/"
	for ev, err := range subtree.Tree(ctx, a.g.at, a.w.Working()) {
		if err != nil {
			return err
		}
		name, child := strings.CutPrefix(ev.Path, dir)
		id, ok := idOf(name)
		switch {
		case ev.Kind == subtree.Initialized:
			a.settle(func() { a.known = true })
		case !child || !ok:
		case ev.Kind == subtree.Deleted:
			a.settle(func() { a.parts.Remove(id) })
		case ev.Kind == subtree.Created || ev.Kind == subtree.Changed:
			var p rounds.Part
			err := a.g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
				p, err = a.w.PartFor(ctx, e, string(ev.Data))
				return err
			})
			if err != nil {
				return err
			}
			a.settle(func() { a.parts.Add(id, p); a.heed() })
		}
	}
	return nil
}
