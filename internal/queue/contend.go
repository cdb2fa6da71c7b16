package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// contest is the way of an entry from its creation to its grant.
type contest struct {
	q       *Queue
	t       *Ticket
	epoch   *zkconn.Epoch
	known   map[string]int64 // czxids of entries, where they had to be asked for (at the end of the numbers)
	ev      *events
	long    bool   // no event came for a while: see longPart
	scout   string // the name of an entry; "" before the wait is long, or if there is none
	sight   *sight // nil if nobody asks for it
	w       *Waiter
	last    string // the name of the first of the newest blockers
	guessed string // the name of the entry that the ticket has guessed; "" if it has not
	listed  bool   // at least once
	read    reading
}

func newContest(t *Ticket) *contest {
	c := &contest{q: t.queue, t: t, epoch: t.Epoch, known: map[string]int64{t.Entry.Name: t.Entry.Czxid}}
	if t.guess != nil {
		c.guessed = t.guess.entry.Name
	}
	return c
}

// view is what a contest knows of the queue: the entries of a listing that
// it keeps, without those that have departed since.
type view struct {
	ahead    []Entry // in order
	blockers []Entry // of ahead: what the policy says
	more     bool    // other entries may be in the way, which ahead does not keep
	guess    *guess  // what it was concluded from, with others ahead of blockers[0]; nil after a listing
}

// run waits until the ticket is granted (nil), its own node is gone (node.ErrGone),
// ctx ends, or the epoch is over. When it returns, all its watches have been stopped.
func (c *contest) run(ctx context.Context) error {
	if c.w = waiterOf(ctx); c.w != nil || c.q.Says {
		c.sight = &c.t.sight
		c.sight.epoch, c.sight.dir = c.epoch, c.q.Dir
	}
	if c.q.Says {
		errs.Waits(ctx, c.sight.standing)
	}
	var pace node.Pace
	var known view
	var last []Entry
	for resumed := false; ; {
		c.ev = newEvents(c.t.Entry.Name, c.guessed) // in each round: the connection of the first may be lost before the answer
		v, err := c.round(ctx, known)
		c.ev.stop()
		if !errors.Is(err, errList) { // nil: it is granted; or an error that another round would not change
			if c.q.Says && ctx.Err() != nil && c.epoch.Linked() {
				c.sight.ask() // before the request that removes the entry, so it is answered before
			}
			if err == nil {
				c.t.Before = c.read.of(c.last)
			}
			return err
		}
		// Usually the queue has changed since the last round. If it has not, what
		// ended that round may happen again at once. Then there is a pause first.
		resumes := errors.Is(err, errResume)
		if !sameEntries(v.ahead, last) || resumed != resumes {
			pace = node.Pace{}
		} else if err := pace.Rest(ctx, c.epoch); err != nil {
			return err
		}
		resumed, last, c.scout = resumes, v.ahead, ""
		if known = (view{}); resumes {
			known = v
		}
	}
}

// round draws conclusions from what is known of the queue, or else from a listing or a guess, and from the events since. It
// returns nil when the ticket is granted, and errList or errResume, with what is known then, when another round is needed.
func (c *contest) round(ctx context.Context, v view) (view, error) {
	if c.q.Config != nil {
		w, err := c.q.Config.Follow(ctx, c.epoch, c.t.Entry.Weight, c.ev.resume)
		if err != nil {
			return v, err
		}
		c.ev.watches = append(c.ev.watches, w)
	}
	if len(v.ahead) > 0 {
		if err := c.epoch.Await(ctx); err != nil { // without a connection nothing can be watched
			return v, err
		}
		if c.counts() { // the config may have changed
			v.blockers = c.blocking(v.ahead)
		}
	}
	if len(v.blockers) == 0 {
		var err error
		if v, err = c.look(ctx); err != nil || len(v.blockers) == 0 {
			return v, err // without blockers, the listing showed the own node, and nothing in its way
		}
	}
	for {
		if c.mayBeNext(v) {
			c.prove()
		}
		// No departure between the listing and this request is missed: the server
		// reports a node that is gone already as soon as it is asked to watch it.
		c.watch(v)
		quiet := c.epoch.Timeout()
		if !c.long {
			quiet /= longPart
		}
		departed, err := c.ev.wait(ctx, c.epoch, quiet)
		switch {
		case errors.Is(err, errQuiet) && !c.long:
			if c.long = true; v.guess != nil && v.guess.children <= deep {
				return view{}, errList // to know the scout, and for people: see sight
			}
			continue
		case errors.Is(err, errQuiet):
			err = c.check(ctx, v.blockers)
		case err == nil && c.blockerReleased(v):
			return v, c.stillInLine(ctx)
		case err == nil && len(departed) > 0:
			v, err = c.without(v, departed)
			if c.scout != "" && slices.Contains(departed, c.scout) {
				c.prove()
			}
		}
		if err != nil {
			return v, err
		}
		if len(v.blockers) == 0 {
			// The departure of the last blocker is the grant,
			// unless an event has put that conclusion in doubt.
			return v, c.stillInLine(ctx)
		}
	}
}

// look tells what is ahead: the entry that the ticket has guessed, the first time, and else what a listing shows.
func (c *contest) look(ctx context.Context) (view, error) {
	if g := c.t.guess; g != nil {
		c.t.guess, c.t.inDoubt = nil, false // a guess is only made where there cannot be a duplicate
		v := view{ahead: []Entry{g.entry}, blockers: []Entry{g.entry}}
		if v.more = g.children > 2; v.more {
			v.guess = g
		} else if c.sight != nil {
			c.sight.listed(v.ahead)
			c.tell()
		}
		return v, nil
	}
	ahead, blockers, err := c.list(ctx)
	if err != nil {
		return view{}, err
	}
	if len(blockers) == 0 {
		c.t.sight.queued(len(ahead))
		return view{}, nil
	}
	if c.sight != nil {
		c.sight.listed(ahead)
		c.tell()
	}
	return c.near(ahead), nil
}

// list lists the queue. It returns the entries ahead, and which of them are in the way now.
func (c *contest) list(ctx context.Context) (ahead, blockers []Entry, err error) {
	if ahead, err = c.ahead(ctx); err == nil {
		blockers, err = c.q.blockersNow(ctx, c.epoch, ahead, c.t.Entry)
	}
	return ahead, blockers, err
}

func (c *contest) blocking(ahead []Entry) []Entry { return c.q.blockers(ahead, c.t.Entry) }

// near is the view of a listing. It keeps only what the waiter needs later: its blockers, and the entries
// that would block if these had left. A waiter behind thousands of entries must not keep thousands of names.
//
// For permits, and under a policy of the caller, it keeps all entries: a missing
// one would change the sum of the permits, or whatever else that policy looks at.
func (c *contest) near(ahead []Entry) view {
	v := view{ahead: ahead, blockers: c.blocking(ahead)}
	if c.counts() {
		return v
	}
	if nearest := 2*together + 1; len(ahead) > nearest && c.t.Entry.exclusive() {
		ahead = ahead[len(ahead)-nearest:] // its blockers, those that would be next, and one more, if there are any
	}
	next := c.blocking(withoutEntries(ahead, v.blockers))
	v.ahead = slices.Concat(next, v.blockers) // still in order: each policy waits for the last entry of some kind
	v.more = len(c.blocking(withoutEntries(ahead, v.ahead))) > 0
	v.blockers = v.ahead[len(next):] // the same, but a part of the copy: the listing's array would be kept, too
	return v
}

// counts reports whether the policy looks at more than the nearest entries: that of permits does, and one of the caller may.
func (c *contest) counts() bool { return c.q.Kind.rules().counts || c.q.Policy != nil }

// prove asks for the proof that a grant needs, so that it is there when the blocker leaves.
func (c *contest) prove() {
	if c.t.unwant == nil {
		c.t.unwant = c.epoch.WantLeaderProof()
	}
}

// longPart is the part of the session timeout after which a wait counts as long. At first there is proof that the session lives:
// from the answer that made the entry. After a long wait there is none, so the ticket must learn in time that it may be the next.
// So it also watches the scout: the entry that would be in the way if the blockers had left. When that
// departs, it asks for proof. Readers have none: there may be many behind several writers, and each should be woken only once.
const longPart = 16

// mayBeNext reports whether the blockers are the last ahead, as far as is known. WeightedPolicy returns the
// heaviest blocker first: if its departure is not enough, the departure of another is not enough either.
func (c *contest) mayBeNext(v view) bool {
	leaving := v.blockers
	if c.counts() {
		leaving = leaving[:1]
	}
	return !v.more && len(c.blocking(withoutEntries(v.ahead, leaving))) == 0
}

// sendScout picks the scout, once the wait is long: of those who would be in the way next the one that probably leaves last. Of
// readers it is the last one, for they usually leave in the order in which they came; of permits the heaviest one.
func (c *contest) sendScout(v view) {
	next := c.blocking(withoutEntries(v.ahead, v.blockers))
	if !c.long || c.scout != "" || len(next) == 0 || c.q.Kind == KindRead {
		return
	}
	if c.scout = next[len(next)-1].Name; c.counts() {
		c.scout = next[0].Name
	}
}

// blockerReleased reports whether the blocker said that it held and has left. Nobody was ahead of it then.
// Between it and our entry there is nobody in our way, because it was the last who was. A policy of
// the caller, and that of permits, may look at others.
func (c *contest) blockerReleased(v view) bool {
	return !c.counts() && len(v.blockers) == 1 && c.ev.wasReleased(v.blockers[0].Name)
}

// stillInLine returns nil if a departure is the grant. That the own node exists is proved by the events that have not come, if the
// servers would have told us of its end. If that is not certain, they are asked: nobody can have come ahead of it meanwhile.
func (c *contest) stillInLine(ctx context.Context) error {
	if err := c.ev.stillHolds(); err != nil || c.t.readable {
		return err
	}
	return c.ownExists(ctx)
}

// ownExists returns node.ErrGone if the own node is not there.
func (c *contest) ownExists(ctx context.Context) error {
	err := exists(ctx, c.epoch, c.t.Node)
	if errors.Is(err, zk.ErrNoNode) {
		return node.ErrGone
	}
	return err
}

// check reads whether the blockers still exist. Some servers (3.8 with its later security
// fixes) do not report the deletion of a node to a session that may not read the node. Without
// check, a waiter behind an entry with another access control list would wait for ever.
//
// A waiter that may not read its own node is not told of the end of that either.
func (c *contest) check(ctx context.Context, blockers []Entry) error {
	if !c.t.readable && c.ownExists(ctx) == node.ErrGone {
		return node.ErrGone
	}
	for _, b := range blockers {
		err := exists(ctx, c.epoch, c.q.Dir+"/"+b.Name)
		if errors.Is(err, zk.ErrNoNode) {
			err = errList
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// without takes departed entries out of a view. It returns errList if what is left is not enough to go on.
func (c *contest) without(v view, departed []string) (view, error) {
	left := slices.Clone(v.ahead)
	for _, name := range departed {
		i := indexEntry(left, name)
		if i < 0 {
			continue
		}
		if c.mayBeReplaced(left[i], c.ev.wasWritten(name)) {
			return v, errList
		}
		left = slices.Delete(left, i, i+1)
	}
	// Blockers that are in the way without those that have left stay: they are watched, and others need not be.
	now := view{ahead: left, blockers: c.blocking(among(left, v.blockers)), more: v.more}
	if len(now.blockers) == 0 {
		now.blockers = c.blocking(left)
	}
	fresh := len(withoutEntries(now.blockers, v.blockers)) > 0
	switch {
	case len(now.blockers) == 0 && v.more:
		return v, errList // no blocker is known, but there are entries that were not kept
	case fresh && (v.more || c.q.Refuse != nil || len(c.ev.unwatched(left)) > 1):
		// A new blocker existed at the listing, but may have left since. A watch would tell of this one entry, and
		// if it has left, the entry ahead of it needs another watch. One listing tells of all.
		return v, errList
	}
	if c.sight != nil {
		c.sight.departed(left, !v.more && (c.t.Entry.exclusive() || c.counts()))
		c.tell()
	}
	return now, nil // watch sets a watch on the new blockers, which also tells whether they exist
}

// mayBeReplaced reports whether another entry may be in the place of e, which departed. A write
// entry may be replaced by a read entry, which does not matter to a reader, and a request for
// several permits by one for fewer. When one of our processes does that, its transaction writes
// to the old node before it deletes it. So if no event told of a write, nothing took the place
// of our process's node. written tells whether the node was written to, or may have been. Other
// libraries replace a node without a write, so of their nodes it is never certain.
func (c *contest) mayBeReplaced(e Entry, written bool) bool {
	turns := e.Kind == KindWrite && c.t.Entry.exclusive() || e.Kind == KindPermit && e.Weight > 1
	return turns && (!node.Announces(e.UUID) || written)
}

// watch subscribes to the own node, the blockers and the scout with one request, except
// those that are subscribed already. The own node comes first: the server checks the
// nodes in this order. So if both the own node and a blocker are gone already, the event
// of the own node comes first, and the departure of the blocker is not taken for a grant.
func (c *contest) watch(v view) {
	c.learn(v.blockers)
	var paths []string
	want := func(name string) {
		if c.ev.subscribe(name) {
			paths = append(paths, c.q.Dir+"/"+name)
		}
	}
	// The own node comes first (see sure below). It is left out if it is watched already.
	want(c.t.Entry.Name)
	for _, b := range v.blockers {
		want(b.Name)
	}
	if c.sendScout(v); c.scout != "" {
		want(c.scout)
	}
	if len(paths) == 0 {
		return
	}
	// Only the confirmation of a request that begins with the own node says that it is watched.
	var sure func()
	if paths[0] == c.t.Node {
		sure = c.ev.confirmOwn
	}
	tell := c.ev.tell
	c.ev.watches = append(c.ev.watches, c.epoch.WatchAll(paths, func(path string, what zkconn.Event) {
		tell(path[len(c.q.Dir)+1:], what)
	}, sure)...)
}
