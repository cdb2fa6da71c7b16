package zkgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Assign divides items among the members of the group that call it, and runs f for those of this member, each
// in a goroutine and under a lease of its own, until ctx ends; then it returns nil. [Stop] and [WithUntilDone]
// end it, too.
//
// f's context ends with ctx, when the item is to move, and when the lease is lost (cause zksync.ErrLost). An
// item is done if f returns nil; after an error it is tried again.
//
// Duplicate items are zksync.ErrMisuse, and so is m if it is of another group or in an Assign already. If it
// is unknown whether a done item is recorded, the error is zksync.Ambiguous.
func (g *Group) Assign(ctx context.Context, m *Membership, items []string, f func(ctx context.Context, item string, l *zksync.Lease) error, opts ...AssignOption) error {
	a, err := g.checked().newAssignment(m, items, f, opts)
	if err == nil {
		err = a.run(ctx)
	}
	return g.at.Named("assign", err)
}

// assignment is one call of Assign.
type assignment struct {
	g       *Group
	m       *Membership
	f       func(ctx context.Context, item string, l *zksync.Lease) error
	onError func(item string, attempt int, err error) // of WithItemErrors; nil without it
	onShare func(items []string)                      // of WithShare; nil without it
	until   bool                                      // of WithUntilDone
	keep    time.Duration                             // of WithKeep; 0 without it
	places  *places                                   // of WithConcurrency; nil without it
	settle  time.Duration                             // of WithSettle
	bad     error                                     // a wrong option
	w       *rounds.Worker
	p       *presence.Presence      // of the worker's node
	user    context.Context         // the caller's
	live    context.Context         // ends when nothing is to begin any more
	fail    context.CancelCauseFunc // ends it

	mu      sync.Mutex
	failed  map[uint64]int // by hash, the newest attempt of each item that has failed here
	parts   *rounds.Division
	known   bool // the workers are known
	divided bool // onShare was called, with share
	share   []string
	here    *presence.Stay
	entered *zkconn.Epoch // the session of the newest worker's node; here may not have it yet
	round   string        // the round of that node
	over    error         // why nothing begins any more
	unrest  unrest        // changes of the workers that no division has followed
	left    int           // items whose record this member has not seen or written
	mine    int           // items that are still to be done here
	looking string        // the round whose record this member follows
	unlook  func()        // ends that
	items   []*item
	running sync.WaitGroup
}

// item is an item of this member's list.
type item struct {
	name     string
	lock     *zksync.Mutex
	cancel   context.CancelCauseFunc // nil if it is not to run here
	ended    chan struct{}           // of the newest run
	done     bool                    // here
	seen     bool                    // this member has seen the record that it is done, in the present round
	recorded bool                    // if done: on the servers, in the present round
	attempt  int                     // the newest one that has failed, here or elsewhere
	after    time.Time               // when to try again
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
		return nil, errs.Misuse("Assign without a membership, or without a function")
	case m.g.at.Session != g.at.Session || m.g.at.Path != g.at.Path:
		return nil, errs.Misuse("the membership is of another group")
	}
	a := &assignment{g: g, m: m, f: f, w: rounds.NewWorker(g.rounds(), layout.Escape(m.id), items), parts: rounds.NewDivision(items), failed: map[uint64]int{}}
	for _, o := range opts {
		o(a)
	}
	switch {
	case a.bad != nil:
		return nil, a.bad
	case a.until:
		a.w.Keep = cmp.Or(a.keep, time.Hour)
	case a.keep != 0:
		return nil, errs.Misuse("WithKeep is for WithUntilDone: without it a round ends with its last member")
	}
	seen := make(map[uint64]string, len(items))
	for _, name := range items {
		hash := rounds.Hash(name)
		if other, there := seen[hash]; there {
			return nil, errs.Misuse("the items %s and %s are the same, or have the same hash", errs.Quote(other), errs.Quote(name))
		}
		seen[hash] = name
		path := strings.TrimSuffix(g.at.Path, "/") + "/" + layout.Group + "/items/" + layout.NodeName(name)
		lock := (*share.Cohort)(zksync.NewMutex((*zksync.Session)(g.at.Session), path, g.opts...)).Part("zkgroup")
		a.items = append(a.items, &item{name: name, lock: (*zksync.Mutex)(lock), recorded: true})
	}
	if 8*len(items)+1024 > record.MaxTransaction {
		return nil, errs.Misuse("%d items are too many", len(items))
	}
	a.p = &presence.Presence{At: g.at, Node: a.w.Node, Data: a.w.Data(nil), Enter: a.enter, Apply: g.applyOn, Exit: a.w.Exit, Lifetime: g.lifetime, Changed: a.present, Taken: a.taken}
	if a.until {
		a.p.Exit = nil // the round is kept
	}
	return a, nil
}

// taken is the error if there is another worker of this ID.
func (a *assignment) taken(here bool) error {
	if here {
		return errs.Misuse("the member %s is in an Assign already", errs.Quote(a.m.id))
	}
	return a.m.taken(false)
}

func (a *assignment) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	a.user = ctx
	ctx, cancel := a.g.at.Bounded(ctx)
	defer cancel()
	ctx, a.fail = context.WithCancelCause(ctx)
	a.live = ctx
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
		if _, err := a.p.There(ctx); err == nil || !a.until { // perhaps there is nothing to do
			a.fail(a.follow(ctx))
		}
	}()
	<-ctx.Done()
	err := context.Cause(ctx)
	a.update(func() { a.over = err; a.stir() })
	a.running.Wait()
	<-followed
	// The servers may refuse without an end. Then the node is removed later, and another Assign waits for that.
	leaving, stop := context.WithTimeout(context.Background(), a.g.at.Session.Timeout())
	defer stop()
	_ = a.p.Leave(leaving)
	ended := new(stopped)
	if a.user.Err() != nil && errors.Is(err, context.Cause(a.user)) || errors.As(err, &ended) && ended.err == nil {
		err = nil
	}
	return errors.Join(err, a.unrecorded())
}

// unrecorded is the error if an item is done, and the other members may not know it.
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

// enter makes the worker's node in a session in which the member has joined, and records what is done but not recorded.
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
	if err := a.g.know(ctx, e); err != nil {
		return err
	}
	round, err := a.w.Enter(ctx, a.p.Leaving(), e, data)
	if errors.Is(err, rounds.ErrDone) {
		a.allDone()
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	var late []*item
	for _, it := range a.items {
		if round != a.round { // the round before has ended, and with it what it recorded
			it.recorded, it.seen = false, false
		}
		it.seen = it.seen || a.w.Seen[layout.NodeName(it.name)]
		if it.done && !it.recorded {
			late = append(late, it)
		}
	}
	a.entered, a.round = e, round
	a.mu.Unlock()
	for _, it := range late {
		if err := a.w.SetDone(ctx, e, round, layout.NodeName(it.name)); err != nil {
			return err
		}
		a.mu.Lock()
		it.recorded = true
		a.mu.Unlock()
	}
	return nil
}

// present is called when the worker's node comes and goes. With the node the round may go, too; and everything that runs ends
// before the next session begins, so no run asks an earlier round.
func (a *assignment) present(st *presence.Stay) { a.update(func() { a.here = st }) }

// follow follows the workers until ctx ends.
func (a *assignment) follow(ctx context.Context) error {
	dir := a.w.Working() + "/"
	for ev, err := range follow.Tree(ctx, a.g.at, a.w.Working()) {
		if err != nil {
			return err
		}
		name, child := strings.CutPrefix(ev.Path, dir)
		id, ok := layout.Unescape(name)
		switch {
		case ev.Kind == follow.Initialized:
			a.update(func() { a.known = true; a.stir() })
		case !child || !ok:
		case ev.Kind == follow.Deleted:
			if err := a.catchUp(ctx); err != nil {
				return err
			}
			a.update(func() { a.parts.Remove(id); a.stir() })
		case ev.Kind == follow.Created || ev.Kind == follow.Changed:
			var p rounds.Part
			err := a.g.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
				p, err = a.w.PartFor(ctx, e, string(ev.Data))
				return err
			})
			if err != nil {
				return err
			}
			a.update(func() { a.parts.Add(id, p); a.delay(); a.stir() })
		}
	}
	return nil
}
