package zkmap

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/table"
)

// LoadMany returns the values of those of the keys that are there, each like [Map.Load]. They are no snapshot: the
// values may be of different times.
func (m *Map[K, V]) LoadMany(ctx context.Context, keys ...K) (map[K]V, error) {
	const op = "load-many"
	found, err := m.made().t.LoadMany(ctx, op, m.keysOf(keys))
	if err != nil {
		return nil, err
	}
	values := make(map[K]V, len(keys))
	for i, k := range keys {
		if !found[i].There {
			continue
		}
		if values[k], err = m.decode(found[i]); err != nil {
			return nil, m.at.Named(op, err)
		}
	}
	return values, nil
}

// StoreMany sets the values of many keys with few requests. Each key is stored on its own, as by [Map.Store]: others
// may see some of the values before the rest. If a key or a value cannot be stored, none is. An error after that
// has a [StoreManyError], which says what became of the keys.
func (m *Map[K, V]) StoreMany(ctx context.Context, values map[K]V) error {
	const op = "store-many"
	keys := make([]K, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	s := &table.Storing{Keys: m.made().keysOf(keys), Encode: func(i int, p *table.Place) ([]byte, error) { return m.encode(p, values[keys[i]]) }}
	err := m.t.StoreMany(ctx, "", s)
	if err == nil {
		return nil
	}
	told := &StoreManyError[K]{Err: err}
	for i, k := range keys {
		switch {
		case s.Stored[i]:
			told.Stored = append(told.Stored, k)
		case s.Doubt[i]:
			told.Unknown = append(told.Unknown, k)
		}
	}
	if told.Stored != nil || told.Unknown != nil {
		err = told
	}
	return m.at.Named(op, err)
}

// StoreManyError is the error of a [Map.StoreMany] that has stored some keys, or may have. Keys that are in neither
// list are not stored.
type StoreManyError[K comparable] struct {
	Stored  []K
	Unknown []K // perhaps: see zksync.Ambiguous
	Err     error
}

// Error says how many keys there are of each.
func (e *StoreManyError[K]) Error() string {
	return fmt.Sprintf("%d keys are stored, and %d may be: %v", len(e.Stored), len(e.Unknown), e.Err)
}

// Unwrap returns the reason.
func (e *StoreManyError[K]) Unwrap() error { return e.Err }

// keysOf encodes keys.
func (m *keyed[K]) keysOf(keys []K) []table.Key {
	all := make([]table.Key, len(keys))
	for i, k := range keys {
		all[i] = m.key(k)
	}
	return all
}
