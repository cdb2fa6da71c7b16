package zkmap

import (
	"context"
	"iter"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Kind says what a [Change] is.
type Kind int

const (
	// Put is a key that was there at the beginning, or a key that has got a value.
	Put Kind = iota + 1
	// Removed is a key that is gone.
	Removed
)

// Change is a change of a map. Value is zero for Removed.
type Change[K comparable, V any] struct {
	Kind  Kind
	Key   K
	Value V
}

// Watch is a loop over the changes of the map. It begins with what is there, as a Put for each key. If a key changes again before
// its change was read, only the last state is told. What is told adds up to what is on the servers, through
// disconnects and lost sessions, and nothing is told twice that has not changed. The changes of one key come in their order; those of
// different keys may come in another order.
//
// The loop waits for the next change until ctx ends. Then, or if the session is closed or the path is that of another type, the
// last error is told. An entry that cannot be decoded is told as an error that names its node, and the loop goes on. The
// body may use the map.
//
// It costs a request for each key at the beginning, and a few for each bucket; then one for each change, and two for a
// removal. After a lost connection it costs one for each key. The servers hold one watch for it, if they are of version 3.6 or later
// and the connection is ours; otherwise two for each key, and twice the requests.
func (m *Map[K, V]) Watch(ctx context.Context) iter.Seq2[Change[K, V], error] {
	return func(yield func(Change[K, V], error) bool) {
		for ev, err := range m.follow(ctx) {
			if err == nil && ev.change.Kind == 0 {
				continue
			}
			if !yield(ev.change, err) {
				return
			}
		}
	}
}

// event is a change of one key, or another event of the tree. The kind of the change tells which.
type event[K comparable, V any] struct {
	tree   follow.Kind
	text   string // the key, as text
	change Change[K, V]
}

// follow is a loop over what happens below the directory of the buckets.
func (m *Map[K, V]) follow(ctx context.Context) iter.Seq2[event[K, V], error] {
	return func(yield func(event[K, V], error) bool) {
		if err := m.t.in(ctx, "watch", fromHere, func(context.Context, *zkconn.Epoch, bool) error { return nil }); err != nil {
			yield(event[K, V]{}, err)
			return
		}
		for ev, err := range follow.Tree(ctx, m.t.at, m.t.buckets()) {
			out := event[K, V]{tree: ev.Kind}
			if err == nil {
				err = m.changed(ev, &out)
			}
			if !yield(out, errs.Wrap("watch", m.t.path, err)) {
				return
			}
		}
	}
}

// changed fills in the change of a key. A node that is not an entry has none.
func (m *Map[K, V]) changed(ev follow.Event, out *event[K, V]) (err error) {
	below, _ := strings.CutPrefix(ev.Path, m.t.buckets()+"/")
	_, name, entries := strings.Cut(below, "/")
	if !entries || strings.Contains(name, "/") || ev.Kind > follow.Deleted {
		return nil
	}
	path := m.t.at.Local(ev.Path)
	text, ok := keyOf(name)
	if !ok {
		return notAKey(path)
	}
	c := Change[K, V]{Kind: Removed}
	if c.Key, err = decodeKey(m.keys, text, path); err != nil {
		return err
	}
	out.text = text
	if ev.Kind != follow.Deleted {
		c.Kind = Put
		if c.Value, err = m.decode(entry{data: ev.Data, path: path}); err != nil {
			return err
		}
	}
	out.change = c
	return nil
}
