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
func (p *Ticket) contend(ctx context.Context) error {
	n := newEvents(p.Entry.Name)
	defer func() { n.stop() }()
	var pace node.Pace
	var last []Entry
	for {
		seen, err := p.round(ctx, n)
		if !errors.Is(err, errList) {
			return err
		}
		// Something has changed, mostly. If not, whatever sent us here again will do so again.
		if sameEntries(seen, last) {
			if err := pace.Rest(ctx, p.Epoch); err != nil {
				return err
			}
		} else {
			pace = node.Pace{}
		}
		last = seen
		// After a scout's departure the subscriptions go on: the blocker may leave during
		// the listing, and without them it would take another request to hear of that.
		if !errors.Is(err, errScouted) || p.queue.Terms != nil {
			n.stop()
			n = newEvents(p.Entry.Name)
		}
	}
}

// round is one listing and what can be concluded from it and from the news since. It returns what it
// kept of the listing.
func (p *Ticket) round(ctx context.Context, n *events) (seen []Entry, err error) {
	if t := p.queue.Terms; t != nil {
		w, changed, err := t.Follow(ctx, p.Epoch, n.retell)
		if w != nil {
			n.hold([]*zkconn.Watch{w})
		}
		if err != nil || changed {
			return nil, p.relearn(ctx, err)
		}
	}
	ahead, err := p.ahead(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.queue.Policy(ahead, p.Entry)) == 0 {
		return nil, nil // this very listing showed the own node, and nothing in its way
	}
	ahead, more := p.near(ahead)
	seen = ahead
	for {
		if p.settle == nil && p.mayBeNext(ahead, more) {
			p.settle = p.Epoch.RequireLeaderProof()
		}
		p.watch(n, ahead)
		departed, err := n.wait(ctx, p.Epoch)
		if errors.Is(err, errQuiet) {
			err = p.check(ctx, ahead)
		}
		if err != nil {
			return seen, err
		}
		if err := p.checkReplaced(ahead, departed, n.wasWritten); err != nil {
			return seen, err
		}
		if ahead, err = p.without(ahead, departed, more); err != nil {
			return seen, err
		}
		if len(p.queue.Policy(ahead, p.Entry)) == 0 {
			return seen, n.sound(p.Epoch)
		}
	}
}

// mayBeNext reports whether the departure of a blocker would be the grant. The heaviest comes first, so
// if its departure is not enough, no other's is. more tells that there are others in the way.
func (p *Ticket) mayBeNext(ahead []Entry, more bool) bool {
	if more {
		return false
	}
	first := p.queue.Policy(ahead, p.Entry)[:1]
	return len(p.queue.Policy(withoutEntries(ahead, first), p.Entry)) == 0
}

// relearn reads the terms again and has the entry begin anew under them.
func (p *Ticket) relearn(ctx context.Context, err error) error {
	if err == nil {
		p.queue.Terms.Forget()
		err = p.queue.Terms.Learn(ctx, p.Epoch)
	}
	if err != nil {
		return err
	}
	if !p.queue.Terms.Fits(p.Entry.Weight) {
		return ErrTooBig
	}
	return errList
}

// errQuiet means that nothing was heard for a session timeout.
var errQuiet = errors.New("zksync: no news")

// check asks whether the blockers are still there. A server that tells nobody of the
// end of a node that he may not read (3.8 with its later security fixes) would leave
// us asleep for ever behind a contender with another access control list.
func (p *Ticket) check(ctx context.Context, ahead []Entry) error {
	for _, b := range p.queue.Policy(ahead, p.Entry) {
		_, there, err := p.Epoch.Exists(ctx, p.queue.Dir+"/"+b.Name)
		switch {
		case zkconn.Unknown(err):
			return node.Sleep(ctx, p.Epoch, lookAgain)
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
// Permits are kept all: each that is forgotten would be missing from the sum that
// decides.
func (p *Ticket) near(ahead []Entry) (kept []Entry, more bool) {
	if p.Entry.Kind == KindPermit {
		return ahead, false
	}
	blockers := p.queue.Policy(ahead, p.Entry)
	rest := withoutEntries(ahead, blockers)
	next := p.queue.Policy(rest, p.Entry)
	for _, e := range ahead {
		if indexEntry(blockers, e.Name) >= 0 || indexEntry(next, e.Name) >= 0 {
			kept = append(kept, e)
		}
	}
	return kept, len(p.queue.Policy(withoutEntries(rest, next), p.Entry)) > 0
}

func withoutEntries(entries, out []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return indexEntry(out, e.Name) >= 0 })
}

// checkReplaced returns errList if something may stand in the place of one that departed. A
// write entry may turn into a read entry, which a reader need not mind, and a request for
// several permits into one for fewer. Ours say so: written tells whether an entry was, or
// may have been, written to before it departed, which happens only then.
func (p *Ticket) checkReplaced(ahead []Entry, departed []string, written func(name string) bool) error {
	for _, name := range departed {
		i := indexEntry(ahead, name)
		if i < 0 {
			continue
		}
		e := ahead[i]
		turns := e.Kind == KindWrite && p.Entry.exclusive() || e.Kind == KindPermit && e.Weight > 1
		if turns && (!node.Announces(e.UUID) || written(name)) {
			return errList
		}
	}
	return nil
}

// without takes departed entries out of ahead, and says if what is left is known
// well enough to go on without a listing. more tells that the listing showed others
// in the way that are not in ahead.
func (p *Ticket) without(ahead []Entry, departed []string, more bool) ([]Entry, error) {
	blockers := p.queue.Policy(ahead, p.Entry)
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
	next := p.queue.Policy(left, p.Entry)
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
func (p *Ticket) watch(n *events, ahead []Entry) {
	blockers := p.queue.Policy(ahead, p.Entry)
	var paths []string
	want := func(name string) {
		if n.subscribe(name) {
			paths = append(paths, p.queue.Dir+"/"+name)
		}
	}
	want(p.Entry.Name)
	for _, b := range blockers {
		want(b.Name)
	}
	if scout, ok := p.scout(ahead, blockers); ok && Scouting {
		want(scout)
	}
	if len(paths) == 0 {
		return
	}
	var sure func()
	if paths[0] == p.Node {
		sure = n.sure
	}
	n.hold(p.Epoch.WatchAll(paths, func(path string, what zkconn.Event) {
		n.tell(path[len(p.queue.Dir)+1:], what)
	}, sure))
}

// Scouting is switched off only by the benchmark that shows what it buys.
var Scouting = true

// scout is the entry whose departure announces that the blockers may be the last:
// what would block if they had left. Readers have none: behind several writers there may
// be many of them, and each should be woken once.
func (p *Ticket) scout(ahead, blockers []Entry) (name string, ok bool) {
	if p.Entry.Kind == KindRead {
		return "", false
	}
	next := p.queue.Policy(withoutEntries(ahead, blockers), p.Entry)
	if len(next) == 0 || next[0].Name == p.Entry.Name {
		return "", false
	}
	return next[0].Name, true
}
