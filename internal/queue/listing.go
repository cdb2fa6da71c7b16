package queue

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// ahead lists the queue and returns the entries ahead of our own, in order.
func (t *Ticket) ahead(ctx context.Context) ([]Entry, error) {
	entries, err := t.queue.list(ctx, t.Epoch, t.notBehind, t.known)
	if zkconn.Unknown(err) {
		return nil, errList
	}
	if err != nil {
		return nil, err
	}
	t.unlisted = false
	ahead, self, found := entriesAhead(entries, t.Entry.UUID)
	if !found {
		return nil, ErrGone
	}
	if t.reapDuplicates(ctx, entries) || self.Name != t.Entry.Name {
		return nil, errList
	}
	return ahead, nil
}

// notBehind drops the names that are behind our own by their number alone, before
// anything is made of them: near the head of a long queue that is nearly all.
func (t *Ticket) notBehind(names []string) []string {
	if nearLimit(t.Entry.Seq) {
		return names
	}
	own := node.Prefix(t.Entry.UUID)
	return slices.DeleteFunc(names, func(n string) bool {
		if len(n) < sequenceLen || strings.HasPrefix(n, own) {
			return false
		}
		seq, ok := ParseSequence(n[len(n)-sequenceLen:])
		return ok && seq > t.Entry.Seq && !nearLimit(seq)
	})
}

// reapDuplicates gives the reaper every entry of our uuid except our own: a request that
// was applied twice made it, and nobody else would ever remove it. It waits a moment for that, so that the next
// listing does not show them, but not when ctx has ended: then the own entry must be given up, too.
func (t *Ticket) reapDuplicates(ctx context.Context, entries []Entry) (found bool) {
	ctx, cancel := context.WithTimeout(ctx, node.Grace)
	defer cancel()
	for _, e := range entries {
		if e.UUID != t.Entry.UUID || e.Name == t.Entry.Name {
			continue
		}
		found = true
		select {
		case <-t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Node: t.queue.Dir + "/" + e.Name}):
		case <-ctx.Done():
		case <-t.Epoch.Over():
		}
	}
	return found
}

// List reads the entries in order; none if there is no directory.
func (q *Queue) List(ctx context.Context, e *zkconn.Epoch) ([]Entry, error) {
	return q.list(ctx, e, func(names []string) []string { return names }, nil)
}

// list reads the entries in order, of those names that are kept. Where
// sequence numbers no longer order them it asks for creation zxids, once each if it may note them in known.
func (q *Queue) list(ctx context.Context, e *zkconn.Epoch, keep func([]string) []string, known map[string]int64) ([]Entry, error) {
	names, _, err := e.Children(ctx, q.Dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err == nil && q.Refuse != nil {
		err = q.Refuse(names)
	}
	if err != nil {
		return nil, err
	}
	names = keep(names)
	entries := make([]Entry, 0, len(names))
	byCzxid := false
	for _, n := range names {
		if en, ok := ParseEntry(n); ok {
			en.Czxid = known[n]
			byCzxid = byCzxid || nearLimit(en.Seq)
			entries = append(entries, en)
		}
	}
	if byCzxid {
		if err := q.fillCzxids(ctx, e, entries, known); err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(en Entry) bool { return en.Czxid < 0 })
	}
	sortEntries(entries, byCzxid)
	return entries, nil
}

// lookups bounds how many czxids are asked for at once.
const lookups = 32

// fillCzxids asks for the creation zxid of every entry that needs one; -1 marks an
// entry that has left since.
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
