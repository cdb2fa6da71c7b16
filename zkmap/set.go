package zkmap

import (
	"context"
	"iter"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/zksync"
)

// Set is a set that many processes share: a [Map] whose keys have no values.
type Set[K comparable] struct{ keyed[K] }

// NewSet is [New] without values.
func NewSet[K comparable](s *zksync.Session, path string, opts ...zksync.Option) *Set[K] {
	return &Set[K]{newKeyed[K](session.NewValueAccess("zkmap", (*session.Session)(s), path, opts).Without("WithCodec"), layout.Set)}
}

// made is s, which NewSet has made. For a zero or nil value it panics.
func (s *Set[K]) made() *Set[K] {
	if s == nil || s.at == nil {
		panic(errs.Unmade("zkmap", "a Set", "NewSet"))
	}
	return s
}

// Add adds a key, and reports whether it was not there.
func (s *Set[K]) Add(ctx context.Context, k K) (added bool, err error) {
	err = s.made().t.RunAt(ctx, "add", table.ToExist, s.key(k), func(p *table.Place) error {
		added, err = p.Create(nil)
		return err
	})
	return added, err
}

// Remove removes a key, and reports whether it was there.
func (s *Set[K]) Remove(ctx context.Context, k K) (removed bool, err error) {
	err = s.made().t.RunAt(ctx, "remove", table.FromLeader, s.key(k), func(p *table.Place) error {
		removed, err = p.Remove()
		return err
	})
	return removed, err
}

// Contains reports whether a key is there: see [Map.Load].
func (s *Set[K]) Contains(ctx context.Context, k K) (there bool, err error) {
	err = s.made().t.RunAt(ctx, "contains", table.FromHere, s.key(k), func(p *table.Place) error {
		found, err := p.Get()
		there = found.There
		return err
	})
	return there, err
}

// Len is [Map.Len].
func (s *Set[K]) Len(ctx context.Context) (int, error) { return s.made().t.Len(ctx) }

// Clear is [Map.Clear].
func (s *Set[K]) Clear(ctx context.Context) error { return s.made().t.Clear(ctx) }

// All is a loop over the keys, in no order: see [Map.Range]. An error ends the loop, and comes last.
func (s *Set[K]) All(ctx context.Context) iter.Seq2[K, error] {
	return s.made().all(ctx, "all")
}
