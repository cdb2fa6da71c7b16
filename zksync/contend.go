package zksync

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
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
//   - what departed cannot have come back as something else in its place: only a
//     write entry can (a downgrade), so after one an exclusive waiter lists again.

// errList means that the entry must look at the directory again.
var errList = errors.New("zksync: list again")

// lookAgain is the pause before a read that got no usable answer is repeated.
const lookAgain = 5 * time.Millisecond

// contend waits until the place is granted, the own node is gone (errGone), ctx
// ends, or the epoch is over. It leaves no subscription behind.
func (p *place) contend(ctx context.Context) error {
	for {
		if err := p.round(ctx); !errors.Is(err, errList) {
			return err
		}
	}
}

// round is one listing and what can be concluded from it.
func (p *place) round(ctx context.Context) error {
	ahead, err := p.ahead(ctx)
	if err != nil {
		return err
	}
	if len(p.q.grant(ahead, p.self)) == 0 {
		return nil // this very listing showed the own node, and nothing in its way
	}
	ahead, more := p.near(ahead)
	n := newNews(p.self.name)
	defer n.stop()
	for {
		p.watch(n, ahead)
		departed, err := n.wait(ctx, p.e)
		if errors.Is(err, errQuiet) {
			err = p.check(ctx, ahead)
		}
		if err != nil {
			return err
		}
		if ahead, err = p.without(ahead, departed, more); err != nil {
			return err
		}
		if len(p.q.grant(ahead, p.self)) == 0 {
			return n.sound(p.e)
		}
	}
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
			return sleep(ctx, p.e, lookAgain)
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
		if left[i].kind == KindWrite && p.self.exclusive() {
			return nil, errList // a reader may stand in its place
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
		return nil, errList
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
// what would block if they had left.
func (p *place) scout(ahead, blockers []entry) (name string, ok bool) {
	next := p.q.grant(withoutEntries(ahead, blockers), p.self)
	if len(next) == 0 || next[0].name == p.self.name {
		return "", false
	}
	return next[0].name, true
}

// ahead lists the queue and returns the entries ahead of our own, in order.
func (p *place) ahead(ctx context.Context) ([]entry, error) {
	names, _, err := p.e.Children(ctx, p.q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, errGone
	}
	if err != nil {
		if zkconn.Unknown(err) {
			if err := sleep(ctx, p.e, lookAgain); err != nil {
				return nil, err
			}
			return nil, errList
		}
		return nil, err
	}
	entries, err := p.q.entries(ctx, p.e, p.notBehind(names), p.czxids())
	if err != nil {
		return nil, err
	}
	p.unseen = false
	ahead, self, found := entriesAhead(entries, p.self.uuid)
	if !found {
		return nil, errGone
	}
	if p.twins(entries) || self.name != p.self.name {
		return nil, errList
	}
	return ahead, nil
}

// notBehind drops the names that are behind our own by their number alone, before
// anything is made of them: near the head of a long queue that is nearly all.
func (p *place) notBehind(names []string) []string {
	if nearLimit(p.self.seq) {
		return names
	}
	own := protectedPrefix + p.self.uuid
	return slices.DeleteFunc(names, func(n string) bool {
		if len(n) < sequenceLen || strings.HasPrefix(n, own) {
			return false
		}
		seq, ok := parseSequence(n[len(n)-sequenceLen:])
		return ok && seq > p.self.seq && !nearLimit(seq)
	})
}

// twins hands every entry of our uuid but our own to the reaper: a request that
// was applied twice made it, and nobody else would ever remove it.
func (p *place) twins(entries []entry) (found bool) {
	for _, e := range entries {
		if e.uuid == p.self.uuid && e.name != p.self.name {
			settle(p.e, p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.q.dir + "/" + e.name}), cleanupGrace)
			found = true
		}
	}
	return found
}

func (p *place) czxids() map[string]int64 {
	if p.known == nil {
		p.known = make(map[string]int64)
	}
	p.known[p.self.name] = p.self.czxid
	return p.known
}

// entries picks the contenders out of a listing and puts them in order. Where
// sequence numbers no longer order them it asks for creation zxids, once each.
func (q *queue) entries(ctx context.Context, e *zkconn.Epoch, names []string, known map[string]int64) ([]entry, error) {
	entries := make([]entry, 0, len(names))
	byCzxid := false
	for _, n := range names {
		if en, ok := parseEntry(n); ok {
			en.czxid = known[n]
			byCzxid = byCzxid || nearLimit(en.seq)
			entries = append(entries, en)
		}
	}
	if byCzxid {
		if err := q.fillCzxids(ctx, e, entries, known); err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(en entry) bool { return en.czxid < 0 })
	}
	sortEntries(entries, byCzxid)
	return entries, nil
}

// lookups bounds how many czxids are asked for at once.
const lookups = 32

// fillCzxids asks for the creation zxid of every entry that needs one; -1 marks an
// entry that has left since.
func (q *queue) fillCzxids(ctx context.Context, e *zkconn.Epoch, entries []entry, known map[string]int64) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	for i := range entries {
		if entries[i].czxid != 0 || !exhausted(entries[i].seq) {
			continue
		}
		g.Go(func() error {
			st, there, err := e.Exists(gctx, q.dir+"/"+entries[i].name)
			switch {
			case err != nil:
				return err
			case there:
				entries[i].czxid = st.Czxid
			default:
				entries[i].czxid = -1
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, en := range entries {
		if en.czxid > 0 && known != nil {
			known[en.name] = en.czxid
		}
	}
	return nil
}

// news collects what the watches of one waiter say.
type news struct {
	self    string // the name of the own node
	mu      sync.Mutex
	asked   map[string]bool
	watches []*zkconn.Watch
	left    []string // departed, not yet taken
	gone    bool     // the own node departed
	cut     bool     // the connection did, or something happened that calls for a look
	watched bool     // the server is known to watch the own node
	ring    chan struct{}
}

func newNews(self string) *news {
	return &news{self: self, asked: make(map[string]bool), ring: make(chan struct{}, 1)}
}

// subscribe reports whether name is not subscribed to yet.
func (n *news) subscribe(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := !n.asked[name]
	n.asked[name] = true
	return first
}

func (n *news) hold(w []*zkconn.Watch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches = append(n.watches, w...)
}

// sure is called in wire order, once the server is known to watch the own node.
func (n *news) sure() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched = true
}

// tell is called in wire order and must not block.
func (n *news) tell(name string, what zkconn.News) {
	n.mu.Lock()
	switch {
	case what == zkconn.Cut:
		n.cut = true
	case what == zkconn.Changed && name == n.self:
		n.cut = true // the watch on which every conclusion rests is spent
	case what == zkconn.Changed:
		// Somebody wrote to a node (a request to revoke, say). It is still there, but
		// the watch is spent.
		n.asked[name] = false
	case name == n.self:
		n.gone = true
	case !n.watched:
		// From a watch that is older than ours on the own node: whether that was still
		// there, nobody has told.
		n.cut = true
	default:
		n.left = append(n.left, name)
	}
	n.mu.Unlock()
	select {
	case n.ring <- struct{}{}:
	default:
	}
}

// sound reports whether the conclusion drawn so far holds: nothing was said that
// puts the own node or the connection in doubt. Because news comes in wire order,
// and the departure that made the conclusion possible has been heard, an earlier
// departure of the own node would have been heard as well.
//
// On a connection that gives no such order, only another listing can tell.
func (n *news) sound(e *zkconn.Epoch) error {
	if !e.Ordered() {
		return errList
	}
	return n.doubt()
}

// doubt returns an error if something was said that ends the wait or calls for
// another listing.
func (n *news) doubt() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.gone:
		return errGone
	case n.cut:
		return errList
	}
	return nil
}

// wait waits for news and returns who departed; none means that a watch was spent.
func (n *news) wait(ctx context.Context, e *zkconn.Epoch) ([]string, error) {
	t := time.NewTimer(e.Timeout())
	defer t.Stop()
	select {
	case <-n.ring:
	case <-t.C:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
	if err := n.doubt(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	left := n.left
	n.left = nil
	return left, nil
}

func (n *news) stop() {
	n.mu.Lock()
	watches := n.watches
	n.watches = nil
	n.mu.Unlock()
	for _, w := range watches {
		w.Stop()
	}
}

// path is the directory's path as the session's user knows it.
func (q *queue) path() string { return strings.TrimPrefix(q.dir, q.s.chroot) }
