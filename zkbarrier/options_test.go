package zkbarrier

import (
	"testing"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/stretchr/testify/require"
)

// An option that is added later must not change the type of a constructor.
func TestEveryConstructorAppliesItsOptions(t *testing.T) {
	var s *zksync.Session
	var applied any
	require.Same(t, NewBarrier(s, "/a", 1, func(b *Barrier) { applied = b }), applied)
	require.Same(t, NewDoubleBarrier(s, "/a", 1, func(b *DoubleBarrier) { applied = b }), applied)
	require.Same(t, NewLatch(s, "/a", 1, func(l *Latch) { applied = l }), applied)
	require.Same(t, NewGate(s, "/a", func(g *Gate) { applied = g }), applied)
	require.Same(t, NewWaitGroup(s, "/a", func(g *WaitGroup) { applied = g }), applied)
	require.Same(t, NewPhaser(s, "/a", func(p *Phaser) { applied = p }), applied)
}
