package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// errList means that what is known is not enough: the ticket must list the directory again.
var errList = errors.New("zksync: list again")

// errMore is errList where nothing has put in doubt what is known: the scout departed
// (see watch), or a guess is to be made certain. The watches are kept, too.
var errMore = fmt.Errorf("%w: what is known still holds", errList)

// errResume is errList where only the watches are in doubt: the connection was lost, or one of them is used up. The set ahead
// only shrinks, so nobody is ahead who was not listed. The ticket subscribes again: an entry that has left
// meanwhile is not found then, and that makes it list.
var errResume = fmt.Errorf("%w, if the watches do not tell", errList)

// contend waits until the ticket is granted (nil), its own node is gone (ErrGone),
// ctx ends, or the epoch is over. When it returns, all its watches have been stopped.
func (t *Ticket) contend(ctx context.Context) error {
	if t.queue.Says {
		errs.Waits(ctx, t.standing)
	}
	ev := newEvents(t.Entry.Name)
	defer func() { ev.stop() }()
	var pace node.Pace
	var known *view
	var last []Entry
	for {
		v, err := t.round(ctx, ev, known)
		if !errors.Is(err, errList) {
			return err
		}
		// Usually the queue has changed since the last round. If it has not, what
		// ended that round may happen again at once. Then there is a pause first.
		resumed, resumes := known != nil, errors.Is(err, errResume)
		if sameEntries(v.ahead, last) && resumed == resumes {
			if err := pace.Rest(ctx, t.Epoch); err != nil {
				return err
			}
		} else {
			pace = node.Pace{}
		}
		if known, last = nil, v.ahead; resumes {
			known = &v
		}
		// Where what is known still holds, the subscriptions stay: the blocker may leave
		// during the listing, and without them another request would be needed to hear of
		// that. With a Config they are made anew, because follow adds one in each round.
		if !errors.Is(err, errMore) || t.queue.Config != nil {
			ev.stop()
			ev = newEvents(t.Entry.Name)
		}
	}
}

// round draws conclusions from what is known of the queue, or else from a listing or a guess, and from the
// events since. It returns nil when the ticket is granted, and errList, errMore or errResume
// when another round is needed. It returns what is known then.
func (t *Ticket) round(ctx context.Context, ev *events, known *view) (v view, err error) {
	if known != nil {
		v = *known
	}
	if c := t.queue.Config; c != nil {
		w, err := c.Follow(ctx, t.Epoch, t.Entry.Weight, ev.resume)
		if err != nil {
			return v, err
		}
		ev.watches = append(ev.watches, w)
	}
	if v, err = t.resume(ctx, v); err != nil {
		return v, err
	}
	if len(v.blockers) == 0 {
		if v, err = t.look(ctx); err != nil || len(v.blockers) == 0 {
			return v, err // without blockers, the listing showed the own node, and nothing in its way
		}
	}
	for {
		// The proof that a grant needs is asked for now, so that it is there when the blocker leaves.
		if t.unrequire == nil && t.mayBeNext(v) {
			t.unrequire = t.Epoch.RequireLeaderProof()
		}
		// No departure between the listing and this request is missed: the server
		// reports a node that is gone already as soon as it is asked to watch it.
		spares := t.spares(ev, v)
		t.watch(ev, v, spares)
		quiet := t.Epoch.Timeout()
		if spares || v.shallow {
			quiet /= scoutAfter
		}
		departed, err := ev.wait(ctx, t.Epoch, quiet)
		switch {
		case errors.Is(err, errQuiet) && v.shallow:
			if ev.scouting, v.shallow = true, false; t.few(ctx) {
				return v, errMore
			}
			continue
		case errors.Is(err, errQuiet) && spares:
			ev.scouting = true
			continue
		case errors.Is(err, errQuiet):
			err = t.check(ctx, v.blockers)
		case err == nil && t.released(ev, v):
			return v, t.confirm(ctx, ev)
		}
		if err == nil {
			if v, err = t.without(v, departed, ev); err == nil && len(departed) > 0 {
				t.sight.departed(v.ahead, !v.more && (t.Entry.exclusive() || t.counts()))
			}
		}
		if err != nil {
			return v, err
		}
		if len(v.blockers) == 0 {
			// The departure of the last blocker is the grant,
			// unless an event has put that conclusion in doubt.
			return v, t.confirm(ctx, ev)
		}
	}
}

// resume is what was known at the end of the last round, by the present policy. It waits for a connection, without which
// nothing could be watched.
func (t *Ticket) resume(ctx context.Context, v view) (view, error) {
	if len(v.ahead) == 0 {
		return view{}, nil
	}
	if t.counts() {
		v = t.view(v.ahead, v.more)
	}
	return v, t.Epoch.Await(ctx)
}

// view is what a waiter knows of the queue: the entries of a
// listing that it keeps, without those that have departed since.
type view struct {
	ahead    []Entry // in order
	blockers []Entry // of ahead: what the policy says
	next     []Entry // of ahead: what would be the blockers if these had left
	more     bool    // there are also entries in the way that are not kept in ahead
	shallow  bool    // it is a guess, which a listing may add to, and that would not be long
}

// look tells what is ahead: what the ticket has guessed, the first time, and else what a listing shows.
func (t *Ticket) look(ctx context.Context) (view, error) {
	if g := t.guess; g != nil {
		t.guess, t.unlisted = nil, false // see guess
		return g.view(), nil
	}
	ahead, err := t.ahead(ctx)
	if err == nil && t.queue.Config != nil {
		var blockers []Entry
		if blockers, err = t.queue.blockersNow(ctx, t.Epoch, ahead, t.Entry); err == nil && len(blockers) == 0 {
			return view{}, nil
		}
	}
	if err != nil {
		return view{}, err
	}
	t.sight.listed(ahead)
	return t.near(ahead), nil
}

func (t *Ticket) view(ahead []Entry, more bool) view {
	return t.viewOf(ahead, t.blockers(ahead), more)
}

func (t *Ticket) viewOf(ahead, blockers []Entry, more bool) view {
	return view{ahead: ahead, blockers: blockers, next: t.blockers(withoutEntries(ahead, blockers)), more: more}
}

// mayBeNext reports whether the grant may come without another listing or watch. Readers may leave all at once.
// WeightedPolicy returns the heaviest blocker first: if its departure is not enough, the departure of
// another is not enough either. The answer only decides how early proof is asked for.
func (t *Ticket) mayBeNext(v view) bool {
	leaving := v.blockers
	if t.counts() {
		leaving = leaving[:1]
	}
	return !v.more && len(t.blockers(withoutEntries(v.ahead, leaving))) == 0
}

// released reports whether the blocker said that it held and has left. Nobody was ahead of it then.
// Between it and our entry there is nobody in our way, because it was the last who was. A policy of
// the caller, and that of permits, may look at others.
func (t *Ticket) released(ev *events, v view) bool {
	return t.believes(v) && ev.wasReleased(v.blockers[0].Name)
}

// believes reports whether the release of the blocker, which it announces, will be the grant.
func (t *Ticket) believes(v view) bool {
	return t.queue.Policy == nil && t.Entry.Kind != KindPermit && len(v.blockers) == 1 && v.blockers[0].sealed()
}

// scoutAfter is the part of the session timeout after which a waiter behind a sealed blocker watches its scout, too.
// It needs no scout to be granted. But if it waits for long, only the scout tells it that it is the next, so that it
// asks in time for proof that its session lives. At first there is such proof: from the answer that made its entry.
const scoutAfter = 16

// spares reports whether the scout is not watched yet.
func (t *Ticket) spares(ev *events, v view) bool {
	return !ev.scouting && t.hasScout(v) && t.believes(v)
}

func (t *Ticket) hasScout(v view) bool {
	return len(v.next) > 0 && t.Entry.Kind != KindRead
}

// scout is the one of those next in the way that probably leaves last: of readers the last one, for they mostly leave
// in the order in which they came. Of permits it is the heaviest one, without which the others may not be in the way.
func (t *Ticket) scout(v view) Entry {
	if t.counts() {
		return v.next[0]
	}
	return v.next[len(v.next)-1]
}

// counts reports whether the policy looks at more than the nearest entries: that of permits does, and one of the caller may.
func (t *Ticket) counts() bool { return t.Entry.Kind == KindPermit || t.queue.Policy != nil }

// errQuiet means that no event came for some time.
var errQuiet = errors.New("zksync: no event")

// few reports whether a listing would still be short. Many may have queued behind this ticket since it entered.
func (t *Ticket) few(ctx context.Context) bool {
	dir, there, err := t.Epoch.Exists(ctx, t.queue.Dir)
	return err != nil || !there || dir.NumChildren <= deep // in doubt the listing tells what is wrong
}

// confirm returns nil if a departure is the grant. That the own node exists is proved by the events that have not come, if the
// servers would have told us of its end. If that is not certain, they are asked: nobody can have come ahead of it meanwhile.
func (t *Ticket) confirm(ctx context.Context, ev *events) error {
	if err := ev.stillHolds(); err != nil || t.readable {
		return err
	}
	err := t.exists(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return ErrGone
	}
	return err
}

// check reads whether the blockers still exist. Some servers (3.8 with its later security
// fixes) do not report the deletion of a node to a session that may not read the node. Without
// check, a waiter behind an entry with another access control list would wait for ever.
//
// A waiter that may not read its own node is not told of the end of that either.
func (t *Ticket) check(ctx context.Context, blockers []Entry) error {
	if !t.readable && errors.Is(t.exists(ctx), zk.ErrNoNode) {
		return ErrGone
	}
	for _, b := range blockers {
		_, there, err := t.Epoch.Exists(ctx, t.queue.Dir+"/"+b.Name)
		switch {
		case err != nil:
			return err
		case !there:
			return errList
		}
	}
	return nil
}

// near is the view of a listing. It keeps only what the waiter needs later: its blockers, and the entries
// that would block if these had left. A waiter behind thousands of entries must not keep thousands of names.
//
// For permits, and under a policy of the caller, it keeps all entries: a missing
// one would change the sum of the permits, or whatever else that policy looks at.
func (t *Ticket) near(ahead []Entry) view {
	v := t.view(ahead, false)
	if t.counts() {
		return v
	}
	v.more = len(t.blockers(withoutEntries(ahead, slices.Concat(v.next, v.blockers)))) > 0
	v.ahead = slices.Concat(v.next, v.blockers) // still in order: each policy waits for the last entry of some kind
	n := len(v.next)
	v.next, v.blockers = v.ahead[:n:n], v.ahead[n:] // the same, but parts of the copy: the listing's array would be kept, too
	return v
}

// without takes departed entries out of a view. It returns errList or errMore
// if what is left is not enough to go on, and a new listing is needed.
func (t *Ticket) without(v view, departed []string, ev *events) (view, error) {
	left := slices.Clone(v.ahead)
	scouted := false
	for _, name := range departed {
		i := indexEntry(left, name)
		if i < 0 {
			continue
		}
		if t.mayBeReplaced(left[i], ev.wasWritten(name)) {
			return v, errList
		}
		scouted = scouted || indexEntry(v.blockers, name) < 0
		left = slices.Delete(left, i, i+1)
	}
	// Blockers that are in the way without those that have left stay: they are watched, and others need not be.
	now := t.viewOf(left, t.blockers(among(left, v.blockers)), v.more)
	if len(now.blockers) == 0 {
		now = t.view(left, v.more)
	}
	fresh := len(withoutEntries(now.blockers, v.blockers)) > 0
	switch {
	case len(now.blockers) == 0 && !v.more, sameEntries(now.blockers, v.blockers) && !scouted:
		return now, nil
	case scouted:
		// The listing tells whether the blockers are the last. It is made now,
		// while they still exist, so that their departure needs no further request.
		return v, errMore
	case len(now.blockers) == 0:
		return v, errList // no blocker is known, but there are entries that were not kept
	case fresh && (v.more || len(ev.unwatched(left)) > 1):
		// A new blocker existed at the listing, but may have left since. A watch would tell of this one entry, and
		// if it has left, the entry ahead of it needs another watch. One listing tells of all, and of the next scout.
		return v, errList
	}
	return now, nil // watch sets a watch on the new blockers, which also tells whether they exist
}

// mayBeReplaced reports whether another entry may be in the place of e, which departed. A write
// entry may be replaced by a read entry, which does not matter to a reader, and a request for
// several permits by one for fewer. When one of our processes does that, its transaction writes
// to the old node before it deletes it. So if no event told of a write, nothing took the place
// of our process's node. written tells whether the node was written to, or may have been. Other
// libraries replace a node without a write, so of their nodes it is never certain.
func (t *Ticket) mayBeReplaced(e Entry, written bool) bool {
	turns := e.Kind == KindWrite && t.Entry.exclusive() || e.Kind == KindPermit && e.Weight > 1
	return turns && (!node.Announces(e.UUID) || written)
}

// watch subscribes to the own node, the blockers and the scout with one request, except
// those that are subscribed already. The own node comes first: the server checks the
// nodes in this order. So if both the own node and a blocker are gone already, the event
// of the own node comes first, and the departure of the blocker is not taken for a grant.
//
// The scout is the entry that would block if the blockers had left. After its departure the blockers
// may be the last, and the listing that finds this out can be made before they leave. Readers have
// no scout: there may be many readers behind several writers, and each should be woken only once.
// Behind a sealed blocker the scout is watched later (spares).
func (t *Ticket) watch(ev *events, v view, spares bool) {
	var paths []string
	want := func(name string) {
		if ev.subscribe(name) {
			paths = append(paths, t.queue.Dir+"/"+name)
		}
	}
	// The own node comes first (see sure below). It is left out if it is watched already.
	want(t.Entry.Name)
	for _, b := range v.blockers {
		want(b.Name)
	}
	if t.hasScout(v) && !spares {
		want(t.scout(v).Name)
	}
	if len(paths) == 0 {
		return
	}
	// Only the confirmation of a request that begins with the own node says that it is watched.
	var sure func()
	if paths[0] == t.Node {
		sure = ev.confirmOwn
	}
	ev.watches = append(ev.watches, t.Epoch.WatchAll(paths, func(path string, what zkconn.Event) {
		ev.tell(path[len(t.queue.Dir)+1:], what)
	}, sure)...)
}
