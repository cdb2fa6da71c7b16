package zkmap

import (
	"context"
	"iter"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Set is a set that many processes share: a map whose keys have no values. What is said of [Map] about
// keys, errors, Close and goroutines holds here, too.
type Set[K comparable] struct {
	at   *session.Access
	t    *table.Table
	keys codec.Keys[K]
}

// NewSet names a set by a path of its own: see [New]. It takes no codec.
func NewSet[K comparable](s *zksync.Session, path string, opts ...zksync.Option) *Set[K] {
	set := &Set[K]{at: session.NewValueAccess((*session.Session)(s), path, opts).Without("WithCodec")}
	set.t, set.keys = keyed[K](set.at, layout.Set)
	return set
}

// made is s, which NewSet has made. Of a zero or nil value it panics.
func (s *Set[K]) made() *Set[K] {
	if s == nil || s.at == nil {
		panic(errs.Unmade("a Set", "NewSet"))
	}
	return s
}

func (s *Set[K]) of(ctx context.Context, op string, need table.Need, k K, f func(ctx context.Context, e *zkconn.Epoch, key string) error) error {
	return of(ctx, s.t, s.at, s.keys, op, need, k, f)
}

// Add adds a key, and reports whether it was not there. It costs one request, and one more for the first key of a bucket.
func (s *Set[K]) Add(ctx context.Context, k K) (added bool, err error) {
	err = s.made().of(ctx, "add", table.ToExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		added, err = s.t.Create(ctx, e, key, nil)
		return err
	})
	return added, err
}

// Remove removes a key, and reports whether it was there. It costs one request.
func (s *Set[K]) Remove(ctx context.Context, k K) (removed bool, err error) {
	err = s.made().of(ctx, "remove", table.FromLeader, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		removed, err = s.t.Remove(ctx, e, key)
		return err
	})
	return removed, err
}

// Contains reports whether a key is there, as far as the session's server knows: see [Map.Load]. It costs one request.
func (s *Set[K]) Contains(ctx context.Context, k K) (there bool, err error) {
	err = s.made().of(ctx, "contains", table.FromHere, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		found, err := s.t.Get(ctx, e, key)
		there = found.There
		return err
	})
	return there, err
}

// Len is the number of keys: see [Map.Len].
func (s *Set[K]) Len(ctx context.Context) (int, error) { return s.made().t.Len(ctx) }

// Clear removes all keys that are there when it begins: see [Map.Clear].
func (s *Set[K]) Clear(ctx context.Context) error { return s.made().t.Clear(ctx) }

// All is a loop over the keys, in no order. Each key is told once, if it is there all the time; a key that comes or goes
// meanwhile may be told or not. An error ends the loop, and is told last. The body of the loop may change the set. It costs
// two requests, and one for each bucket.
func (s *Set[K]) All(ctx context.Context) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		err := s.made().t.Each(ctx, "all", false, func(key string, found table.Entry) error {
			k, err := decodeKey(s.keys, key, found.Node)
			if err == nil && !yield(k, nil) {
				err = table.ErrStop
			}
			return err
		})
		if err != nil {
			var none K
			yield(none, err)
		}
	}
}
