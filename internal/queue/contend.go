package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// errList means that the entry must look at the directory again.
var errList = errors.New("zksync: list again")

// errScouted is errList after the departure of the second blocker, the scout: all conclusions still hold.
var errScouted = fmt.Errorf("%w: the scout left", errList)

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
	v := t.near(ahead)
	seen = v.ahead
	for {
		if t.unrequire == nil && t.mayBeNext(v) {
			t.unrequire = t.Epoch.RequireLeaderProof()
		}
		t.watch(ev, v)
		departed, err := ev.wait(ctx, t.Epoch)
		if errors.Is(err, errQuiet) {
			err = t.check(ctx, v.blockers)
		}
		if err == nil {
			v, err = t.without(v, departed, ev.wasWritten)
		}
		if err != nil {
			return seen, err
		}
		if len(v.blockers) == 0 {
			return seen, ev.stillHolds(t.Epoch)
		}
	}
}

// view is what a waiter knows of the queue: the entries of a listing, without those that have departed since.
type view struct {
	ahead    []Entry // in order
	blockers []Entry // of ahead
	next     []Entry // of ahead: the blockers if those had left
	more     bool    // others are in the way that are not kept in ahead
}

func (t *Ticket) view(ahead []Entry, more bool) view {
	blockers := t.blockers(ahead)
	return view{ahead, blockers, t.blockers(withoutEntries(ahead, blockers)), more}
}

// mayBeNext reports whether the departure of a blocker would be the grant. The heaviest comes first, so
// if its departure is not enough, no other's is.
func (t *Ticket) mayBeNext(v view) bool {
	return !v.more && len(t.blockers(withoutEntries(v.ahead, v.blockers[:1]))) == 0
}

// follow makes the entry begin anew when the config changes. A config that has changed already is read again.
func (t *Ticket) follow(ctx context.Context, c Config, ev *events) error {
	w, changed, err := c.Follow(ctx, t.Epoch, ev.listAgain)
	if w != nil {
		ev.watches = append(ev.watches, w)
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
func (t *Ticket) check(ctx context.Context, blockers []Entry) error {
	for _, b := range blockers {
		_, there, err := t.Epoch.Exists(ctx, t.queue.Dir+"/"+b.Name)
		switch {
		case zkconn.Unknown(err): // the next check may tell
		case err != nil:
			return err
		case !there:
			return errList
		}
	}
	return nil
}

// near is the view of a listing. It keeps what a waiter must remember: its blockers, and the entries that
// would block if they had left.
// A waiter behind thousands must not keep thousands of names.
//
// Of permits, and under a policy of the caller, it keeps all entries: a missing one would change
// the sum that decides.
func (t *Ticket) near(ahead []Entry) view {
	v := t.view(ahead, false)
	if t.Entry.Kind == KindPermit || t.queue.Policy != nil {
		return v
	}
	v.more = len(t.blockers(withoutEntries(ahead, slices.Concat(v.next, v.blockers)))) > 0
	v.ahead = slices.Concat(v.next, v.blockers) // in order: each policy waits for the last entry of some kind
	return v
}

func withoutEntries(entries, out []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return indexEntry(out, e.Name) >= 0 })
}

// without takes departed entries out of a view. It returns an error if a new listing is needed to
// go on.
func (t *Ticket) without(v view, departed []string, written func(name string) bool) (view, error) {
	left := slices.Clone(v.ahead)
	scouted := false
	for _, name := range departed {
		i := indexEntry(left, name)
		if i < 0 {
			continue
		}
		if t.mayBeReplaced(left[i], written(name)) {
			return v, errList
		}
		scouted = scouted || indexEntry(v.blockers, name) < 0
		left = slices.Delete(left, i, i+1)
	}
	now := t.view(left, v.more)
	switch {
	case len(now.blockers) == 0 && !v.more, sameEntries(now.blockers, v.blockers) && !scouted:
		return now, nil
	case scouted:
		// Find out, off the critical path, whether the blockers are the last.
		return v, errScouted
	case len(now.blockers) == 0, len(v.blockers) == 1 && (v.more || len(left) > 1):
		// We know that the new blocker existed at the listing. One read would
		// tell more of it, and another read of the next one; one listing tells all.
		return v, errList
	}
	return now, nil // one read, which also watches, is as good as a listing
}

// mayBeReplaced reports whether another entry may be in the place of one that departed. A
// write entry may turn into a read entry, which does not matter to a reader, and a request for
// several permits into one for fewer. Our processes write to the old node first: written tells whether the entry was, or
// may have been, written to before it departed, which happens only then.
func (t *Ticket) mayBeReplaced(e Entry, written bool) bool {
	turns := e.Kind == KindWrite && t.Entry.exclusive() || e.Kind == KindPermit && e.Weight > 1
	return turns && (!node.Announces(e.UUID) || written)
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
//
// The scout is the entry that would block if the blockers had left. After its departure the blockers may
// be the last. Readers have no scout: there may be many of them behind several writers,
// and each should be woken once.
func (t *Ticket) watch(ev *events, v view) {
	var paths []string
	want := func(name string) {
		if ev.subscribe(name) {
			paths = append(paths, t.queue.Dir+"/"+name)
		}
	}
	want(t.Entry.Name)
	for _, b := range v.blockers {
		want(b.Name)
	}
	if len(v.next) > 0 && t.Entry.Kind != KindRead && Scouting {
		want(v.next[0].Name)
	}
	if len(paths) == 0 {
		return
	}
	var sure func()
	if paths[0] == t.Node {
		sure = ev.confirmOwn
	}
	ev.watches = append(ev.watches, t.Epoch.WatchAll(paths, func(path string, what zkconn.Event) {
		ev.tell(path[len(t.queue.Dir)+1:], what)
	}, sure)...)
}

// Scouting is switched off only by the benchmark that measures it.
var Scouting = true
