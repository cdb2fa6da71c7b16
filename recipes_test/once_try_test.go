package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestATryAtAOnceDoesNotWait(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		os := v.onces(3)
		never := func(context.Context) ([]byte, error) { t.Error("it was called"); return nil, nil }
		began, finish := make(chan struct{}), make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() {
			value, err := os[0].TryDoContext(context.Background(), func(ctx context.Context) ([]byte, error) {
				close(began)
				<-finish
				require.True(t, zkonce.Lease(ctx).Valid())
				return []byte("v1"), nil
			})
			require.NoError(t, err)
			require.Equal(t, "v1", string(value))
		})
		v.awaits(began, "the function")
		start := time.Now()
		for _, o := range os {
			_, err := o.TryDoContext(context.Background(), never)
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
		}
		v.atOnce(start, "TryDoContext")
		close(finish)
		running.Wait()
		v.flush()
		for _, o := range os {
			value, err := o.TryDoContext(context.Background(), never)
			require.NoError(t, err)
			require.Equal(t, "v1", string(value))
		}
		v.left(oncePath+"/lock", 0, "it is over")
		require.NoError(t, os[1].Reset(context.Background()))
		_, err := os[1].TryDoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, errTest })
		require.ErrorIs(t, err, errTest)
		v.left(oncePath+"/lock", 0, "it is over")
	})
}
