package recipes_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every request of three who ask while the first runs is struck once with every fault.
func TestEveryFaultLeavesTheFlightSound(t *testing.T) {
	everyFault(t, 40, func(t *testing.T, v *env) func(string) {
		fs := v.flights(3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var runs atomic.Int32
			inside := section{}
			var all sync.WaitGroup
			for i, f := range fs {
				all.Go(func() {
					time.Sleep(time.Duration(i) * 100 * time.Millisecond)
					value, err, _ := f.Do(ctx, flightKey, func(context.Context) (string, error) {
						inside.pass()
						time.Sleep(time.Second)
						runs.Add(1)
						return "x", nil
					})
					require.NoError(t, err, name)
					require.Equal(t, "x", value, name)
				})
			}
			all.Wait()
			require.EqualValues(t, 1, runs.Load(), name)
			v.later()
			require.Empty(t, v.srv.Children(flightLock), name)
			value, err, shared := fs[2].Do(ctx, flightKey, says("y"))
			require.NoError(t, err, name)
			require.Equal(t, "y", value, name)
			require.False(t, shared, name)
		}
	})
}

// The same, while the key is forgotten in the middle.
func TestEveryFaultLeavesAForgottenFlightSound(t *testing.T) {
	everyFault(t, 40, func(t *testing.T, v *env) func(string) {
		fs := v.flights(3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			old, fresh := newGate("old"), newGate("new")
			first := asks(ctx, fs[0], old.run)
			v.awaits(old.began, "the function")
			require.NoError(t, fs[1].Forget(ctx, flightKey), name)
			second := asks(ctx, fs[1], fresh.run)
			v.awaits(fresh.began, name)
			third := asks(ctx, fs[2], v.never)
			time.Sleep(time.Minute)
			close(fresh.finish)
			for _, p := range []*trip{second, third} {
				v.awaits(p.done, name)
				require.NoError(t, p.err, name)
				require.Equal(t, "new", p.value, name)
			}
			close(old.finish)
			v.awaits(first.done, name)
			require.NoError(t, first.err, name)
			require.Equal(t, "old", first.value, name)
			v.later()
			require.Empty(t, v.srv.Children(flightLock), name)
			require.Empty(t, v.srv.Children(flightForgotten), name)
		}
	})
}
