package proving

import (
	"context"

	"github.com/stretchr/testify/require"
)

// counter is a latch, or a wait group.
type counter interface {
	Count(ctx context.Context) (int, error)
}

// Remaining checks how many are still waited for.
func (v *Env) Remaining(c counter, want int) {
	v.T.Helper()
	v.Flush()
	n, err := c.Count(context.Background())
	require.NoError(v.T, err)
	require.Equal(v.T, want, n)
}

// Gives calls f and checks what it returns.
func (v *Env) Gives(want int, f func(context.Context) (int, error)) {
	v.T.Helper()
	v.Flush()
	n, err := f(context.Background())
	require.NoError(v.T, err)
	require.Equal(v.T, want, n)
}

// NothingLeft checks that a round has left no node.
func (v *Env) NothingLeft(dir string, names ...string) {
	v.T.Helper()
	v.Quiet()
	if !v.Virtual { // the reaper, which tries again, may be between two attempts
		v.Queued(dir, len(names))
	}
	require.ElementsMatch(v.T, names, v.Children(dir))
}
