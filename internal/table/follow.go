package table

import (
	"context"
	"iter"
	"strings"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Event is a change of an entry, which has Is, Key and Entry, or another event of [follow.Tree].
type Event struct {
	Kind follow.Kind
	Is   bool
	Key  string
	Entry
}

// Follow returns a loop over the changes of the entries, like [follow.Tree]. A node that is not an entry is an
// error in the loop; other errors end it.
func (t *Table) Follow(ctx context.Context, op string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := t.run(ctx, op, FromHere, func(context.Context, *zkconn.Epoch, bool) error { return nil }); err != nil {
			yield(Event{}, err)
			return
		}
		for ev, err := range follow.Tree(ctx, t.at, t.buckets()) {
			out := Event{Kind: ev.Kind}
			if err == nil {
				err = t.changed(ev, &out)
			}
			if !yield(out, t.at.Named(op, err)) {
				return
			}
		}
	}
}

// changed fills in the change of an entry.
func (t *Table) changed(ev follow.Event, out *Event) error {
	below, _ := strings.CutPrefix(ev.Path, t.buckets())
	_, name, inBucket := strings.Cut(strings.TrimPrefix(below, "/"), "/")
	if !inBucket || ev.Kind > follow.Deleted {
		return nil
	}
	out.Node = t.at.Local(ev.Path)
	if out.Key, out.Is = keyOf(name); !out.Is {
		return NotAKey(out.Node)
	}
	out.There, out.Data, out.Stat = ev.Kind != follow.Deleted, ev.Data, ev.Stat
	return nil
}

// FollowKey returns a loop over the states of an entry, like [follow.Data]. It makes the table, which says in which bucket the
// entry is.
func (t *Table) FollowKey(ctx context.Context, op string, key Key) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		node := ""
		if err := t.RunAt(ctx, op, ToExist, key, func(p *Place) error { node = p.entry(); return nil }); err != nil {
			yield(Entry{}, err)
			return
		}
		for n, err := range follow.Data(ctx, t.at, node) {
			if !yield(Entry{n.Stat != nil, n.Data, t.at.Local(node), n.Stat}, t.at.Named(op, err)) {
				return
			}
		}
	}
}
