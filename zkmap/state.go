package zkmap

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a map.
type State struct {
	zksync.Summary
	Keys int64 `json:"count"`
}

// State reads the state.
func (m *Map[K, V]) State(ctx context.Context) (State, error) {
	return stateOf(ctx, m.made().at, layout.Map, m.t)
}

// SetState is the state of a set.
type SetState State

// State reads the state.
func (s *Set[K]) State(ctx context.Context) (SetState, error) {
	st, err := stateOf(ctx, s.made().at, layout.Set, s.t)
	return SetState(st), err
}

func stateOf(ctx context.Context, at *session.Access, kind string, t *table.Table) (State, error) {
	return look.State(ctx, at, kind, func(r *look.Reader) State {
		buckets, keys := r.Node(t.Buckets()), int64(0)
		r.Each(buckets, buckets.Names(), func(b *look.Node) { keys += b.Len() })
		return State{r.Summary("entries", "%s", wording.Plural(keys, "key")), keys}
	})
}
