package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// ahead lists the queue and returns the entries ahead of our own, in order. It returns
// node.ErrGone if our own entry is not there, and errList if another listing is needed.
func (c *contest) ahead(ctx context.Context) ([]Entry, error) {
	t := c.t
	entries, err := c.entries(ctx)
	if err != nil {
		return nil, err
	}
	ahead, self, found := entriesAhead(entries, t.Entry.UUID)
	if t.inDoubt { // later listings show who is left; those that have come since are not what it found
		c.q.Crowds.note(c.q.Dir, int32(len(ahead)+1))
	}
	// The listing shows a duplicate, if there is one: see reapDuplicates below.
	t.inDoubt = false
	if !found {
		return nil, node.ErrGone
	}
	if c.reapDuplicates(ctx, entries) || self.Name != t.Entry.Name {
		return nil, errList
	}
	return ahead, nil
}

// entries lists the queue, without most of the entries behind our own: the first time, behind many, with other entries of the session.
func (c *contest) entries(ctx context.Context) (entries []Entry, err error) {
	if c.listed || c.t.crowd <= deep || nearLimit(c.t.Entry.Seq) {
		// Names behind our own are dropped, but not those with our uuid: they may be duplicates.
		entries, err = c.q.list(ctx, c.epoch, func(names []string) ([]string, error) {
			return notBehind(names, c.t.Entry), c.q.agree(names)
		}, c.known)
	} else {
		entries, err = c.q.Crowds.list(ctx, c)
	}
	c.listed = true
	return entries, err
}

// notBehind drops the names whose number alone shows that they are behind our own,
// before they are parsed. Near the head of a long queue these are nearly all names.
func notBehind(names []string, self Entry) []string {
	if nearLimit(self.Seq) {
		return names
	}
	own := node.Prefix(self.UUID)
	return slices.DeleteFunc(names, func(n string) bool {
		if len(n) < sequenceLen || strings.HasPrefix(n, own) {
			return false
		}
		seq, ok := ParseSequence(n[len(n)-sequenceLen:])
		return ok && seq > self.Seq && !nearLimit(seq)
	})
}

// reapDuplicates gives the reaper every entry of our uuid except our own: a request that was applied twice
// made it, and nobody else would ever remove it. It waits a moment for the removal, so that the next listing
// does not show the duplicate. It does not wait once ctx has ended: then our own entry must be given up, too.
func (c *contest) reapDuplicates(ctx context.Context, entries []Entry) (found bool) {
	ctx, cancel := context.WithTimeout(ctx, node.Grace)
	defer cancel()
	for i := range entries { // a copy of each would cost more than the comparison
		e := &entries[i]
		if e.UUID != c.t.Entry.UUID || e.Name == c.t.Entry.Name {
			continue
		}
		found = true
		select {
		case <-c.epoch.Reap(zkconn.Orphan{Dir: c.q.Dir, Node: c.q.Dir + "/" + e.Name}):
		case <-ctx.Done():
		case <-c.epoch.Over():
		}
	}
	return found
}

// List reads the entries in order. It returns none if there is no directory.
func (q *Queue) List(ctx context.Context, e *zkconn.Epoch) ([]Entry, error) {
	return q.list(ctx, e, func(names []string) ([]string, error) { return names, nil }, nil)
}

// list reads, in order, the entries whose names keep returns. Where sequence numbers no longer tell the order,
// it asks for creation zxids. It notes them in known, if that is not nil, so that each is asked for once.
func (q *Queue) list(ctx context.Context, e *zkconn.Epoch, keep func([]string) ([]string, error), known map[string]int64) ([]Entry, error) {
	names, _, err := e.Children(ctx, q.Dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err == nil {
		err = q.admits(names)
	}
	if err == nil {
		names, err = keep(names)
	}
	if err != nil {
		return nil, err
	}
	entries, byCzxid := parseEntries(names)
	if byCzxid {
		for i := range entries {
			entries[i].Czxid = known[entries[i].Name]
		}
		if err := q.fillCzxids(ctx, e, entries, known); err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(en Entry) bool { return en.Czxid < 0 })
	}
	sortEntries(entries, byCzxid)
	return entries, nil
}

// admits returns an error if the children of the directory are those of another type, or forbid to queue.
func (q *Queue) admits(names []string) error {
	if found := layout.Typed(names); found != "" {
		return layout.Refuse(cmp.Or(q.Type, TypeOf(q.Kind)), found)
	}
	if q.Refuse != nil {
		return q.Refuse(names)
	}
	return nil
}

// parseEntries returns the entries that have such names. One near the limit is enough for byCzxid: sortEntries must then know the
// czxid of every exhausted entry.
func parseEntries(names []string) (entries []Entry, byCzxid bool) {
	entries = make([]Entry, 0, len(names))
	for _, n := range names {
		if en, ok := ParseEntry(n); ok {
			byCzxid = byCzxid || nearLimit(en.Seq)
			entries = append(entries, en)
		}
	}
	return entries, byCzxid
}

// lookups is how many nodes are read at once, at most.
const lookups = 32

// fillCzxids asks for the creation zxid of every entry that
// needs one. It marks an entry that has left since with -1.
func (q *Queue) fillCzxids(ctx context.Context, e *zkconn.Epoch, entries []Entry, known map[string]int64) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	for i := range entries {
		en := &entries[i]
		if en.Czxid != 0 || !exhausted(en.Seq) {
			continue
		}
		g.Go(func() error {
			st, there, err := e.Exists(gctx, q.Dir+"/"+en.Name)
			if en.Czxid = -1; there {
				en.Czxid = st.Czxid
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, en := range entries {
		if en.Czxid > 0 && known != nil {
			known[en.Name] = en.Czxid
		}
	}
	return nil
}
