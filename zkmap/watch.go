package zkmap

import (
	"context"
	"fmt"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/zkatomic"
)

// Kind says what a [Change] is.
type Kind int

const (
	// Put is a key that was there at the beginning, or that has got a value.
	Put Kind = iota + 1
	// Removed is a key that is gone.
	Removed
)

func (k Kind) String() string {
	switch k {
	case Put:
		return "put"
	case Removed:
		return "removed"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Change is a change of a map. Value is zero for Removed.
type Change[K comparable, V any] struct {
	Kind  Kind
	Key   K
	Value V
}

// Watch is a loop over the changes of the map, beginning with a Put for each key. Applied in order, the
// changes give the state on the servers, through disconnects and lost sessions. If a key changes again before
// its change was read, only its last state comes.
//
// The loop ends with ctx, whose error comes last. After an entry that cannot be decoded it goes on.
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
			if !yield(c, m.at.Named("watch", err)) {
				return
			}
		}
	}
}

// WatchKey is a loop over the present value of a key, and then every later one, through disconnects and new
// sessions. A snapshot without OK says that the key is not there. If the key changes again before its change was
// read, only the last state comes; Skipped is how many changes were left out at least.
//
// The loop ends with ctx, whose error comes last. After a value that cannot be decoded it goes on.
func (m *Map[K, V]) WatchKey(ctx context.Context, k K) iter.Seq2[zkatomic.Snapshot[V], error] {
	return func(yield func(zkatomic.Snapshot[V], error) bool) {
		var last *zk.Stat
		begun := false
		for found, err := range m.made().t.FollowKey(ctx, "watch-key", m.key(k)) {
			s := zkatomic.Snapshot[V]{OK: found.There, Version: versionOf(found)}
			if begun {
				s.Skipped = skipped(last, found.Stat)
			}
			if found.There {
				s.Value, err = m.decode(found)
				s.OK = err == nil
			}
			if begun, last = true, found.Stat; !yield(s, m.at.Named("watch-key", err)) {
				return
			}
		}
	}
}

// skipped is how many changes there were at least between two states of a node.
func skipped(last, now *zk.Stat) int {
	switch {
	case now == nil: // it was removed, and perhaps changed before
		return 0
	case last == nil:
		return int(now.Version)
	case last.Czxid == now.Czxid:
		return int(now.Version-last.Version) - 1 // also when the version has passed its greatest number
	}
	return int(now.Version) + 1 // it was removed and stored again
}

// changeOf decodes the change of an entry.
func (m *Map[K, V]) changeOf(ev table.Event) (c Change[K, V], err error) {
	k, err := m.decodeKey(ev.Key, ev.Node)
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
