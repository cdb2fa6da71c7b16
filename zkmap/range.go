package zkmap

import (
	"context"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/table"
)

// Len is the number of keys. Keys that come or go meanwhile may be counted or not.
func (m *Map[K, V]) Len(ctx context.Context) (int, error) { return m.made().t.Len(ctx) }

// Clear removes all keys that are there when it begins, at most 500 at a time.
func (m *Map[K, V]) Clear(ctx context.Context) error { return m.made().t.Clear(ctx) }

// Range calls f for each key, in no order, until f returns false. A key that is there during the whole call
// is passed once, with a value that it had meanwhile; others may be passed or not. f may change the map.
func (m *Map[K, V]) Range(ctx context.Context, f func(k K, v V) bool) error {
	return m.made().t.Each(ctx, "range", true, func(key string, found table.Entry) error {
		k, err := m.decodeKey(key, found.Node)
		if err != nil {
			return err
		}
		v, err := m.decode(found)
		if err == nil && !f(k, v) {
			err = table.ErrStop
		}
		return err
	})
}

// Entry is a key of a map with its value.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
	// Version grows with each change of the key, also when it is removed and stored again.
	Version int64
	// Modified is when the value was stored, by the clock of the servers.
	Modified time.Time
}

// Entries is a loop over the keys with their values and versions: see [Map.Range]. An error ends the loop, and
// comes last.
func (m *Map[K, V]) Entries(ctx context.Context) iter.Seq2[Entry[K, V], error] {
	return each(ctx, m.made().t, "entries", true, func(key string, found table.Entry) (e Entry[K, V], err error) {
		if e.Key, err = m.decodeKey(key, found.Node); err == nil {
			e.Value, err = m.decode(found)
		}
		e.Version, e.Modified = versionOf(found), time.UnixMilli(found.Stat.Mtime)
		return e, err
	})
}

// Keys is a loop over the keys, like [Map.Entries]. It does not read the values.
func (m *Map[K, V]) Keys(ctx context.Context) iter.Seq2[K, error] { return m.made().all(ctx, "keys") }

func (m *keyed[K]) all(ctx context.Context, op string) iter.Seq2[K, error] {
	return each(ctx, m.t, op, false, func(key string, found table.Entry) (K, error) { return m.decodeKey(key, found.Node) })
}

// each is a loop over the entries of a table.
func each[T any](ctx context.Context, t *table.Table, op string, data bool, decode func(key string, found table.Entry) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := t.Each(ctx, op, data, func(key string, found table.Entry) error {
			v, err := decode(key, found)
			if err == nil && !yield(v, nil) {
				err = table.ErrStop
			}
			return err
		})
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// versionOf is the zxid of the newest change of an entry, 0 if there is none. Unlike the version of its node it grows when the entry
// is created again.
func versionOf(found table.Entry) int64 {
	if found.Stat == nil {
		return 0
	}
	return found.Stat.Mzxid
}
