package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// What members cost: each applies everything.
func BenchmarkCreateDeleteInAnEnsemble(b *testing.B) {
	for _, n := range []int{1, 3, 5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := NewEnsemble(n, func(int) Config { return Config{} }, EnsembleConfig{Leader: n - 1})
			defer e.Close()
			w := join(b, e.Member(0), time.Hour)
			for b.Loop() {
				w.create("/n", nil, wire.FlagEphemeral)
				w.do(wire.OpDelete, versionBody("/n", -1))
			}
		})
	}
}
