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
	out.There, out.Data = ev.Kind != follow.Deleted, ev.Data
	return nil
}
