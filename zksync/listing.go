package zksync

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
func (p *place) ahead(ctx context.Context) ([]entry, error) {
	names, _, err := p.e.Children(ctx, p.q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, errGone
	}
	if err != nil {
		if zkconn.Unknown(err) {
			if err := node.Sleep(ctx, p.e, lookAgain); err != nil {
				return nil, err
			}
			return nil, errList
		}
		return nil, err
	}
	if err := p.q.rival.refuse(names); err != nil {
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
	if p.twins(ctx, entries) || self.name != p.self.name {
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
// was applied twice made it, and nobody else would ever remove it. It waits a moment for that, so that the next
// listing does not show them, but not when ctx has ended: there is more to give up then.
func (p *place) twins(ctx context.Context, entries []entry) (found bool) {
	ctx, cancel := context.WithTimeout(ctx, cleanupGrace)
	defer cancel()
	for _, e := range entries {
		if e.uuid != p.self.uuid || e.name == p.self.name {
			continue
		}
		found = true
		select {
		case <-p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.q.dir + "/" + e.name}):
		case <-ctx.Done():
		case <-p.e.Over():
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
