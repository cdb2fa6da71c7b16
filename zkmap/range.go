package zkmap

import (
	"context"

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
