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

// errScouted is errList after the departure of a scout: all conclusions still hold.
var errScouted = fmt.Errorf("%w: the scout left", errList)

// lookAgain is the pause before a read without a usable answer is repeated.
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
		// Usually something has changed. If not, the same cause may bring us here again.
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

// round lists once, and draws the conclusions from the listing and from the events since. It returns the
// entries that it kept of the listing.
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
		return nil, nil // this listing showed the own node, and nothing in its way
	}
	ahead, more := t.near(ahead)
	seen = ahead
	for {
		if t.unrequire == nil && t.mayBeNext(ahead, more) {
			t.unrequire = t.Epoch.RequireLeaderProof()
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

// follow makes the entry begin anew when the config changes. A config that has changed already is read again.
func (t *Ticket) follow(ctx context.Context, c Config, ev *events) error {
	w, changed, err := c.Follow(ctx, t.Epoch, ev.listAgain)
	if w != nil {
		ev.hold([]*zkconn.Watch{w})
	}
	if err != nil || !changed {
		return err
	}
	if err := c.Learn(ctx, t.Epoch); err != nil {
		return err
	}
	if !c.Fits(t.Entry.Weight) {
		return ErrTooBig
	}
	return errList
}

// errQuiet means that there was no event for a session timeout.
var errQuiet = errors.New("zksync: no event")

// check asks whether the blockers still exist. Some servers (3.8 with its later security fixes) do not report the
// end of a node to a session that may not read it. Without check such a waiter would
// wait for ever behind a contender with another access control list.
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

// near keeps the entries of a listing that a waiter must remember: its blockers, and the entries that
// would block if they had left. It reports whether anything more is in the way.
// A waiter behind thousands must not keep thousands of names.
//
// Of permits, and under a policy of the caller, it keeps all entries: a missing one would change
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

// checkReplaced returns errList if another entry may be in the place of one that departed. A
// write entry may turn into a read entry, which does not matter to a reader, and a request for
// several permits into one for fewer. Our processes write to the old node first: written tells whether an entry was, or
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

// without takes departed entries out of ahead. It returns an error if a new listing is needed to
// go on. more tells that the listing showed other entries
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
		// Find out, off the critical path, whether the blockers are the last.
		return nil, errScouted
	case len(next) == 0, len(blockers) == 1 && (more || len(left) > 1):
		// We know that the new blocker existed at the listing. One read would
		// tell more of it, and another read of the next one; one listing tells all.
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

// watch subscribes to the own node, the blockers and the scout with one request, except those
// that are subscribed already. The own node comes first: the server checks
// them in this order, so if both it and a blocker are gone, its event comes first.
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

// Scouting is switched off only by the benchmark that measures it.
var Scouting = true

// scout is the entry that would block if the blockers had left. After its departure the blockers may
// be the last. Readers have no scout: there may be many of them behind several writers,
// and each should be woken once.
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
