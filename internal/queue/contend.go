package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// errList means that the entry must look at the directory again.
var errList = errors.New("zksync: list again")

// errScouted is errList after the departure of a scout: nothing is in doubt.
var errScouted = fmt.Errorf("%w: the scout left", errList)

// lookAgain is the pause before a read that got no usable answer is repeated.
const lookAgain = 5 * time.Millisecond

// contend waits until the ticket is granted, the own node is gone (ErrGone), ctx
// ends, or the epoch is over. It leaves no subscription behind.
func (t *Ticket) contend(ctx context.Context) error {
	ev := newEvents(t.Entry.Name)
	defer func() { ev.stop() }()
	var pace node.Pace
	var last []Entry
	for {
		seen, err := t.round(ctx, ev)
		if !errors.Is(err, errList) {
			return err
		}
		// Something has changed, mostly. If not, whatever sent us here again will do so again.
		if sameEntries(seen, last) {
			if err := pace.Rest(ctx, t.Epoch); err != nil {
				return err
			}
		} else {
			pace = node.Pace{}
		}
		last = seen
		// After a scout's departure the subscriptions go on: the blocker may leave during
		// the listing, and without them it would take another request to hear of that.
		if !errors.Is(err, errScouted) || t.queue.Config != nil {
			ev.stop()
			ev = newEvents(t.Entry.Name)
		}
	}
}

// round is one listing and what can be concluded from it and from the events since. It returns what it
// kept of the listing.
func (t *Ticket) round(ctx context.Context, ev *events) (seen []Entry, err error) {
	if c := t.queue.Config; c != nil {
		if err := t.follow(ctx, c, ev); err != nil {
			return nil, err
		}
	}
	ahead, err := t.ahead(ctx)
	if err != nil {
		return nil, err
	}
	if len(t.blockers(ahead)) == 0 {
		return nil, nil // this very listing showed the own node, and nothing in its way
	}
	ahead, more := t.near(ahead)
	seen = ahead
	for {
		if t.settle == nil && t.mayBeNext(ahead, more) {
			t.settle = t.Epoch.RequireLeaderProof()
		}
		t.watch(ev, ahead)
		departed, err := ev.wait(ctx, t.Epoch)
		if errors.Is(err, errQuiet) {
			err = t.check(ctx, ahead)
		}
		if err != nil {
			return seen, err
		}
		if err := t.checkReplaced(ahead, departed, ev.wasWritten); err != nil {
			return seen, err
		}
		if ahead, err = t.without(ahead, departed, more); err != nil {
			return seen, err
		}
		if len(t.blockers(ahead)) == 0 {
			return seen, ev.stillHolds(t.Epoch)
		}
	}
}

// mayBeNext reports whether the departure of a blocker would be the grant. The heaviest comes first, so
// if its departure is not enough, no other's is. more tells that there are others in the way.
func (t *Ticket) mayBeNext(ahead []Entry, more bool) bool {
	if more {
		return false
	}
	first := t.blockers(ahead)[:1]
	return len(t.blockers(withoutEntries(ahead, first))) == 0
}

// follow has the entry begin anew when the config changes. One that has changed already is read again.
func (t *Ticket) follow(ctx context.Context, c Config, ev *events) error {
	w, changed, err := c.Follow(ctx, t.Epoch, ev.listAgain)
	if w != nil {
		ev.hold([]*zkconn.Watch{w})
	}
	if err != nil || !changed {
		return err
	}
	c.Forget()
	if err := c.Learn(ctx, t.Epoch); err != nil {
		return err
	}
	if !c.Fits(t.Entry.Weight) {
		return ErrTooBig
	}
	return errList
}

// errQuiet means that nothing was heard for a session timeout.
var errQuiet = errors.New("zksync: no event")

// check asks whether the blockers are still there. A server that tells nobody of the
// end of a node that he may not read (3.8 with its later security fixes) would leave
// us asleep for ever behind a contender with another access control list.
func (t *Ticket) check(ctx context.Context, ahead []Entry) error {
	for _, b := range t.blockers(ahead) {
		_, there, err := t.Epoch.Exists(ctx, t.queue.Dir+"/"+b.Name)
		switch {
		case zkconn.Unknown(err):
			return node.Sleep(ctx, t.Epoch, lookAgain)
		case err != nil:
			return err
		case !there:
			return errList
		}
	}
	return nil
}

// near keeps what a waiter needs to remember of a listing: its blockers and what
// would block if they had left. It reports whether anything more is in the way.
// Whoever queues behind thousands must not keep thousands of names.
//
// All are kept of permits, and under any policy but those of the kinds: each that is forgotten would be missing from
// the sum that decides.
func (t *Ticket) near(ahead []Entry) (kept []Entry, more bool) {
	if t.Entry.Kind == KindPermit || t.queue.Policy != nil {
		return ahead, false
	}
	blockers := t.blockers(ahead)
	rest := withoutEntries(ahead, blockers)
	next := t.blockers(rest)
	for _, e := range ahead {
		if indexEntry(blockers, e.Name) >= 0 || indexEntry(next, e.Name) >= 0 {
			kept = append(kept, e)
		}
	}
	return kept, len(t.blockers(withoutEntries(rest, next))) > 0
}

func withoutEntries(entries, out []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return indexEntry(out, e.Name) >= 0 })
}

// checkReplaced returns errList if something may stand in the place of one that departed. A
// write entry may turn into a read entry, which a reader need not mind, and a request for
// several permits into one for fewer. Ours say so: written tells whether an entry was, or
// may have been, written to before it departed, which happens only then.
func (t *Ticket) checkReplaced(ahead []Entry, departed []string, written func(name string) bool) error {
	for _, name := range departed {
		i := indexEntry(ahead, name)
		if i < 0 {
			continue
		}
		e := ahead[i]
		turns := e.Kind == KindWrite && t.Entry.exclusive() || e.Kind == KindPermit && e.Weight > 1
		if turns && (!node.Announces(e.UUID) || written(name)) {
			return errList
		}
	}
	return nil
}

// without takes departed entries out of ahead, and says if what is left is known
// well enough to go on without a listing. more tells that the listing showed others
// in the way that are not in ahead.
func (t *Ticket) without(ahead []Entry, departed []string, more bool) ([]Entry, error) {
	blockers := t.blockers(ahead)
	left := slices.Clone(ahead)
	scouted := false
	for _, name := range departed {
		i := indexEntry(left, name)
		if i < 0 {
			continue
		}
		scouted = scouted || indexEntry(blockers, name) < 0
		left = slices.Delete(left, i, i+1)
	}
	next := t.blockers(left)
	switch {
	case len(next) == 0 && !more, sameEntries(next, blockers) && !scouted:
		return left, nil
	case scouted:
		// Off the critical path, learn whether the blockers are the last.
		return nil, errScouted
	case len(next) == 0, len(blockers) == 1 && (more || len(left) > 1):
		// Of the new blocker we know that it was there at the listing. One read would
		// tell more of it, and the next one of the next; one listing tells all.
		return nil, errList
	}
	return left, nil // one read, which also watches, is as good as a listing
}

func indexEntry(entries []Entry, name string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
}

func sameEntries(a, b []Entry) bool {
	return slices.EqualFunc(a, b, func(x, y Entry) bool { return x.Name == y.Name })
}

// watch subscribes to the own node, the blockers and the scout, as far as that is
// not done yet, with one request. The own node comes first: the server looks at
// them in this order, so if both it and a blocker are gone we hear of it first.
func (t *Ticket) watch(ev *events, ahead []Entry) {
	blockers := t.blockers(ahead)
	var paths []string
	want := func(name string) {
		if ev.subscribe(name) {
			paths = append(paths, t.queue.Dir+"/"+name)
		}
	}
	want(t.Entry.Name)
	for _, b := range blockers {
		want(b.Name)
	}
	if scout, ok := t.scout(ahead, blockers); ok && Scouting {
		want(scout)
	}
	if len(paths) == 0 {
		return
	}
	var sure func()
	if paths[0] == t.Node {
		sure = ev.confirmOwn
	}
	ev.hold(t.Epoch.WatchAll(paths, func(path string, what zkconn.Event) {
		ev.tell(path[len(t.queue.Dir)+1:], what)
	}, sure))
}

// Scouting is switched off only by the benchmark that shows what it buys.
var Scouting = true

// scout is the entry whose departure announces that the blockers may be the last:
// what would block if they had left. Readers have none: behind several writers there may
// be many of them, and each should be woken once.
func (t *Ticket) scout(ahead, blockers []Entry) (name string, ok bool) {
	if t.Entry.Kind == KindRead {
		return "", false
	}
	next := t.blockers(withoutEntries(ahead, blockers))
	if len(next) == 0 || next[0].Name == t.Entry.Name {
		return "", false
	}
	return next[0].Name, true
}
