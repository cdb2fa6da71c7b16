package zkmap

import "context"

// Destroy removes the map, if no call changes it in its turn: else the error is zksync.ErrMisuse. Entries of a large map go
// one after the other; until the last one is gone, changes fail with zksync.ErrBroken. See docs/guarantees/calls.md.
func (m *Map[K, V]) Destroy(ctx context.Context) error { return m.made().t.Destroy(ctx) }

// Destroy removes the set, like [Map.Destroy].
func (s *Set[K]) Destroy(ctx context.Context) error { return s.made().t.Destroy(ctx) }
