package atomic_test

import (
	"context"
	"testing"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// BenchmarkAFarProcess changes values beside a process near the servers that never pauses. docs/atomic.md has the figures.
func BenchmarkAFarProcess(b *testing.B) {
	all := map[string]func(s *zksync.Session) func(context.Context) error{
		"update of a key": func(s *zksync.Session) func(context.Context) error {
			m := zkmap.New[string, int](s, path+"/map")
			return func(ctx context.Context) error {
				_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, nil })
				return err
			}
		},
	}
	for _, name := range []string{"add", "next", "update", "swap"} {
		all[name] = uses[name]
	}
	for name, use := range all {
		b.Run(name, func(b *testing.B) {
			proving.BenchFarAway(b, 1, func(_ *testing.B, s *zksync.Session) func(context.Context) error { return use(s) })
		})
	}
}
