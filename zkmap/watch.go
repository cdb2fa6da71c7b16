package zkmap

import (
	"context"
	"iter"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/table"
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
		for ev, err := range m.made().t.Follow(ctx, "watch") {
			var c Change[K, V]
			if err == nil {
				if !ev.Is {
					continue
				}
				c, err = m.changeOf(ev)
			}
			if !yield(c, errs.Wrap("watch", m.at.Path, err)) {
				return
			}
		}
	}
}

// changeOf decodes the change of an entry.
func (m *Map[K, V]) changeOf(ev table.Event) (c Change[K, V], err error) {
	k, err := decodeKey(m.keys, ev.Key, ev.Node)
	if err != nil {
		return c, err
	}
	if !ev.There {
		return Change[K, V]{Kind: Removed, Key: k}, nil
	}
	v, err := m.decode(ev.Entry)
	if err != nil {
		return c, err
	}
	return Change[K, V]{Put, k, v}, nil
}
