package zksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Waiting. From one listing on, the state of an entry is the set of entries ahead
// of it, and nothing can enter ahead of an entry that exists, so the set can only
// lose members. What the entry waits for is a pure function of it: its policy.
//
// The grant needs no request when the departure of the last blocker is proof by
// itself. It is, if three things hold:
//   - the own node is still there. A waiter watches it, on the same connection as
//     its blockers, and the wire tells news in the order of the server's history:
//     once the server has said that it watches the own node, we would have heard
//     first if that had gone first. What is told before, or after the connection
//     was cut, leads to a new listing.
//   - nothing else is ahead. Either the listing showed nothing else, or the entry
//     ahead of the blocker (the scout) was watched too, and a listing made after
//     its departure, while the blocker was still there, showed nothing else.
//   - what departed cannot have come back as something else in its place: see believe.

// errList means that the entry must look at the directory again.
var errList = errors.New("zksync: list again")

// errScouted is errList after the departure of a scout: nothing is in doubt.
var errScouted = fmt.Errorf("%w: the scout left", errList)

// lookAgain is the pause before a read that got no usable answer is repeated.
const lookAgain = 5 * time.Millisecond

// contend waits until the place is granted, the own node is gone (errGone), ctx
// ends, or the epoch is over. It leaves no subscription behind.
func (p *place) contend(ctx context.Context) error {
	n := newNews(p.self.name)
	defer func() { n.stop() }()
	var pace node.Pace
	var last []entry
	for {
		seen, err := p.round(ctx, n)
		if !errors.Is(err, errList) {
			return err
		}
		// Something has changed, mostly. If not, whatever sent us here again will do so again.
		if sameEntries(seen, last) {
			if err := pace.Rest(ctx, p.e); err != nil {
				return err
			}
		} else {
			pace = node.Pace{}
		}
		last = seen
		// After a scout's departure the subscriptions go on: the blocker may leave during
		// the listing, and without them it would take another request to hear of that.
		if !errors.Is(err, errScouted) || p.q.terms != nil {
			n.stop()
			n = newNews(p.self.name)
		}
	}
}

// round is one listing and what can be concluded from it and from the news since. It returns what it
// kept of the listing.
func (p *place) round(ctx context.Context, n *news) (seen []entry, err error) {
	if t := p.q.terms; t != nil {
		if changed, err := t.follow(ctx, p.e, n); err != nil || changed {
			return nil, p.relearn(ctx, err)
		}
	}
	ahead, err := p.ahead(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.q.grant(ahead, p.self)) == 0 {
		return nil, nil // this very listing showed the own node, and nothing in its way
	}
	ahead, more := p.near(ahead)
	seen = ahead
	for {
		if p.settle == nil && p.mayBeNext(ahead, more) {
			p.settle = p.e.Sustain()
		}
		p.watch(n, ahead)
		departed, err := n.wait(ctx, p.e)
		if errors.Is(err, errQuiet) {
			err = p.check(ctx, ahead)
		}
		if err != nil {
			return seen, err
		}
		if err := p.believe(ahead, departed, n.wasWritten); err != nil {
			return seen, err
		}
		if ahead, err = p.without(ahead, departed, more); err != nil {
			return seen, err
		}
		if len(p.q.grant(ahead, p.self)) == 0 {
			return seen, n.sound(p.e)
		}
	}
}

// mayBeNext reports whether the departure of a blocker would be the grant. The heaviest comes first, so
// if its departure is not enough, no other's is. more tells that there are others in the way.
func (p *place) mayBeNext(ahead []entry, more bool) bool {
	if more {
		return false
	}
	first := p.q.grant(ahead, p.self)[:1]
	return len(p.q.grant(withoutEntries(ahead, first), p.self)) == 0
}

// relearn reads the terms again and has the entry begin anew under them.
func (p *place) relearn(ctx context.Context, err error) error {
	if err == nil {
		p.q.terms.forget()
		err = p.q.terms.learn(ctx, p.e, p.q.acl)
	}
	if err != nil {
		return err
	}
	if p.self.weight > p.q.terms.capacity() {
		return errTooBig
	}
	return errList
}

// errQuiet means that nothing was heard for a session timeout.
var errQuiet = errors.New("zksync: no news")

// check asks whether the blockers are still there. A server that tells nobody of the
// end of a node that he may not read (3.8 with its later security fixes) would leave
// us asleep for ever behind a contender with another access control list.
func (p *place) check(ctx context.Context, ahead []entry) error {
	for _, b := range p.q.grant(ahead, p.self) {
		_, there, err := p.e.Exists(ctx, p.q.dir+"/"+b.name)
		switch {
		case zkconn.Unknown(err):
			return node.Sleep(ctx, p.e, lookAgain)
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
func (p *place) near(ahead []entry) (kept []entry, more bool) {
	if p.self.kind == KindPermit {
		return ahead, false
	}
	blockers := p.q.grant(ahead, p.self)
	rest := withoutEntries(ahead, blockers)
	next := p.q.grant(rest, p.self)
	for _, e := range ahead {
		if indexEntry(blockers, e.name) >= 0 || indexEntry(next, e.name) >= 0 {
			kept = append(kept, e)
		}
	}
	return kept, len(p.q.grant(withoutEntries(rest, next), p.self)) > 0
}

func withoutEntries(entries, out []entry) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return indexEntry(out, e.name) >= 0 })
}

// believe returns errList if something may stand in the place of one that departed. A
// write entry may turn into a read entry, which a reader need not mind, and a request for
// several permits into one for fewer. Ours say so: written tells whether an entry was, or
// may have been, written to before it departed, which happens only then.
func (p *place) believe(ahead []entry, departed []string, written func(name string) bool) error {
	for _, name := range departed {
		i := indexEntry(ahead, name)
		if i < 0 {
			continue
		}
		e := ahead[i]
		turns := e.kind == KindWrite && p.self.exclusive() || e.kind == KindPermit && e.weight > 1
		if turns && (!node.Announces(e.uuid) || written(name)) {
			return errList
		}
	}
	return nil
}

// without takes departed entries out of ahead, and says if what is left is known
// well enough to go on without a listing. more tells that the listing showed others
// in the way that are not in ahead.
func (p *place) without(ahead []entry, departed []string, more bool) ([]entry, error) {
	blockers := p.q.grant(ahead, p.self)
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
	next := p.q.grant(left, p.self)
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

func indexEntry(entries []entry, name string) int {
	return slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
}

func sameEntries(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(x, y entry) bool { return x.name == y.name })
}

// watch subscribes to the own node, the blockers and the scout, as far as that is
// not done yet, with one request. The own node comes first: the server looks at
// them in this order, so if both it and a blocker are gone we hear of it first.
func (p *place) watch(n *news, ahead []entry) {
	blockers := p.q.grant(ahead, p.self)
	var paths []string
	want := func(name string) {
		if n.subscribe(name) {
			paths = append(paths, p.q.dir+"/"+name)
		}
	}
	want(p.self.name)
	for _, b := range blockers {
		want(b.name)
	}
	if scout, ok := p.scout(ahead, blockers); ok && scouting {
		want(scout)
	}
	if len(paths) == 0 {
		return
	}
	var sure func()
	if paths[0] == p.node {
		sure = n.sure
	}
	n.hold(p.e.WatchAll(paths, func(path string, what zkconn.News) {
		n.tell(path[len(p.q.dir)+1:], what)
	}, sure))
}

// scouting is switched off only by the benchmark that shows what it buys.
var scouting = true

// scout is the entry whose departure announces that the blockers may be the last:
// what would block if they had left. Readers have none: behind several writers there may
// be many of them, and each should be woken once.
func (p *place) scout(ahead, blockers []entry) (name string, ok bool) {
	if p.self.kind == KindRead {
		return "", false
	}
	next := p.q.grant(withoutEntries(ahead, blockers), p.self)
	if len(next) == 0 || next[0].name == p.self.name {
		return "", false
	}
	return next[0].name, true
}

// path is the primitive's path as the session's user knows it.
func (q *queue) path() string { return strings.TrimSuffix(q.s.local(q.dir), q.sub) }
