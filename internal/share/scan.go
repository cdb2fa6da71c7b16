package share

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/waitfor"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// search returns a cycle of which the wait of g is a part, and whose edges all existed at one instant; nil if there is none.
func (g *guard) search(ctx context.Context) (*found, error) {
	e, err := g.s.at.Client().Epoch(ctx)
	if err != nil {
		return nil, err
	}
	v := &scan{g: g, e: e, seen: map[string]*seen{}}
	v.left.Store(mostReads)
	held, direct := g.paths()
	err = v.read(ctx, held)
	if errors.Is(err, errTooMany) {
		v.tell() // and nothing is found: the queue of what is held is too long by itself
	}
	if err != nil || !v.waited(held) {
		return nil, err
	}
	err = v.beside(ctx, direct)
	if errors.Is(err, errTooMany) {
		v.tell()
		err = v.closest(ctx, append(held, g.place()), direct)
	}
	if err != nil || v.cycle() == nil {
		return nil, err
	}
	// Entries that were there at both reads were there in between, and all of the first read was read before that. A wait that is
	// not granted at the second was not at the first. So all that is left of the first read existed at one instant.
	if err := v.again(ctx); err != nil {
		return nil, err
	}
	return v.cycle(), nil
}

// found is a cycle, and the wait that looked for it.
type found struct {
	waitfor.Cycle
	own waitfor.Entry
}

// newer is how many waits of the cycle began after its own, and say what they hold.
func (f *found) newer() (n int) {
	for _, s := range f.Steps {
		if w := s.Wait; w.Under != "" && w.Under != node.UnderNone && waitfor.Newer(w, f.own) > 0 {
			n++
		}
	}
	return n
}

// scan is what one look has read.
type scan struct {
	g    *guard
	e    *zkconn.Epoch
	left atomic.Int64 // how many nodes it may still read

	mu   sync.Mutex
	seen map[string]*seen // by path
}

// seen is the queue of one path.
type seen struct {
	at      *queue.Queue
	entries []waitfor.Entry
}

// mostReads bounds the nodes that a look reads.
const mostReads = 1000

var errTooMany = errors.New("zksync: too many nodes to look at")

// place is the path of the lock whose queue is the directory dir.
func place(dir string, kind queue.Kind) string {
	if kind == queue.KindPermit {
		return strings.TrimSuffix(dir, queue.PermitQueue)
	}
	return dir
}

func placeOf(l *lease.Lease) string { return place(path.Dir(l.Node()), l.Ticket().Entry.Kind) }

// place is the path of the lock that g waits for.
func (g *guard) place() string { return place(g.s.q.Shown, g.s.q.Kind) }

// paths are the locks that the caller holds, and all that goroutines of this session hold, or wait for while they hold others.
func (g *guard) paths() (held, direct []string) {
	for _, l := range g.held {
		if l.Err() == nil {
			held = append(held, placeOf(l))
		}
	}
	direct = append(slices.Clone(held), g.place())
	for _, l := range lease.Live(g.s.at.Session) {
		direct = append(direct, placeOf(l))
	}
	for _, other := range waitsOf(g.s.at.Session).list() {
		direct = append(direct, other.place())
	}
	slices.Sort(direct)
	return held, slices.Compact(direct)
}

// closest reads these queues, and as many of the others as it may. It begins again: a read that was cut off is no read.
func (v *scan) closest(ctx context.Context, these, others []string) error {
	v.left.Store(mostReads)
	clear(v.seen)
	err := v.read(ctx, these)
	if err == nil {
		err = v.read(ctx, others)
		if errors.Is(err, errTooMany) {
			return nil
		}
	}
	return err
}

// waited reports whether an owner that holds something else waits in one of these queues.
func (v *scan) waited(paths []string) bool {
	for _, p := range paths {
		if slices.ContainsFunc(v.entries(p), func(e waitfor.Entry) bool { return e.State == queue.Waiting && e.Under != node.UnderNone }) {
			return true
		}
	}
	return false
}

// read reads the queues of these paths, unless it has.
func (v *scan) read(ctx context.Context, paths []string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, p := range paths {
		v.mu.Lock()
		_, been := v.seen[p]
		if !been {
			v.seen[p] = &seen{}
		}
		v.mu.Unlock()
		if !been {
			g.Go(func() error { return v.one(ctx, p) })
		}
	}
	return g.Wait()
}

// one reads the queue of a path. One that may not be read, or is no lock, has no entries.
func (v *scan) one(ctx context.Context, p string) error {
	if v.left.Add(-1) < 0 {
		return errTooMany
	}
	q := &queue.Queue{Dir: v.g.s.at.Full(p), Shown: p, Type: layout.Mutex}
	at, entries, err := q.Locate(ctx, v.e)
	if err == nil && v.left.Add(-int64(len(entries))) < 0 {
		return errTooMany
	}
	var found []queue.Contender
	total := int64(0)
	if err == nil && len(entries) > 0 {
		found, err = at.Describe(ctx, v.e, entries, func() (int64, error) {
			t, err := at.Permits(ctx, v.e, entries)
			total = t.Now()
			return total, err
		})
	}
	if err != nil {
		return unreadable(err)
	}
	s := &seen{at: at}
	for _, c := range found {
		s.entries = append(s.entries, waitfor.Entry{Contender: c, Path: p, Total: total})
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[p] = s
	return nil
}

// unreadable is nil for an error that another look would find again.
func unreadable(err error) error {
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, errs.ErrMisuse) {
		return nil
	}
	return err
}

// beside reads the queues of these paths, of those beside them, and of those below the roots.
func (v *scan) beside(ctx context.Context, paths []string) error {
	if err := v.read(ctx, paths); err != nil {
		return err
	}
	var parents []string
	for _, p := range paths {
		parents = append(parents, path.Dir(p))
	}
	slices.Sort(parents)
	for _, dir := range slices.Compact(parents) {
		below, err := v.below(ctx, dir)
		if err == nil {
			err = v.read(ctx, below)
		}
		if err != nil {
			return err
		}
	}
	roots := slices.Clone(v.g.s.at.Settings.Deadlocks.Roots)
	for ; len(roots) > 0; roots = roots[1:] {
		below, err := v.below(ctx, roots[0])
		if err == nil {
			err = v.read(ctx, below)
		}
		if err != nil {
			return err
		}
		roots = append(roots, below...)
	}
	return nil
}

// below are the paths below a directory that may be locks.
func (v *scan) below(ctx context.Context, dir string) (paths []string, err error) {
	if v.left.Add(-1) < 0 {
		return nil, errTooMany
	}
	names, _, err := v.e.Children(ctx, v.g.s.at.Full(dir))
	for _, n := range names {
		if _, entry := queue.ParseEntry(n); !entry {
			paths = append(paths, path.Join(dir, n))
		}
	}
	slices.Sort(paths)
	return paths, unreadable(err)
}

// tell logs once that a look has not seen all.
func (v *scan) tell() {
	w := waitsOf(v.g.s.at.Session)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.told {
		w.told = true
		v.g.s.at.Log().Once("deadlocks", "").Warn("too many locks to look for deadlocks: only those that this session holds or waits for are looked at",
			"path", v.g.place(), "reason", fmt.Sprintf("there are more than %d nodes", mostReads))
	}
}

// again reads which entries of the stuck queues are still there, and forgets all that changed.
func (v *scan) again(ctx context.Context) error {
	all, _ := v.all()
	graph := waitfor.New(all)
	stuck := map[string]bool{}
	for i, e := range all {
		stuck[e.Path] = stuck[e.Path] || graph.Stuck(i)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for p, s := range v.seen {
		if !stuck[p] || s.at == nil {
			s.entries = nil
			continue
		}
		g.Go(func() error {
			now, err := s.standings(gctx, v.e)
			s.entries = slices.DeleteFunc(s.entries, func(e waitfor.Entry) bool { return now[e.Node] != e.State })
			return err
		})
	}
	return g.Wait()
}

// standings is whether the entries hold, by their names alone.
func (s *seen) standings(ctx context.Context, e *zkconn.Epoch) (map[string]queue.Standing, error) {
	entries, err := s.at.List(ctx, e)
	if err != nil {
		return nil, err
	}
	permits, err := s.at.Permits(ctx, e, entries)
	if err != nil {
		return nil, err
	}
	now := map[string]queue.Standing{}
	for i, en := range entries {
		state := queue.Waiting
		if len(queue.PolicyFor(en.Kind, permits.Now())(entries[:i], en)) == 0 {
			state = queue.Held
		}
		now[s.at.Shown+"/"+en.Name] = state
	}
	return now, nil
}
