package once_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestATryAtAOnceDoesNotWait(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		os := onces(v, 3)
		never := func(context.Context) ([]byte, error) { t.Error("it was called"); return nil, nil }
		began, finish := make(chan struct{}), make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() {
			value, err := os[0].TryDoContext(context.Background(), func(ctx context.Context) ([]byte, error) {
				close(began)
				<-finish
				require.True(t, zksync.LeaseFrom(ctx).Valid())
				return []byte("v1"), nil
			})
			require.NoError(t, err)
			require.Equal(t, "v1", string(value))
		})
		v.Awaits(began, "the function")
		start := time.Now()
		for _, o := range os {
			_, err := o.TryDoContext(context.Background(), never)
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
		}
		v.AtOnce(start, "TryDoContext")
		close(finish)
		running.Wait()
		v.Flush()
		for _, o := range os {
			value, err := o.TryDoContext(context.Background(), never)
			require.NoError(t, err)
			require.Equal(t, "v1", string(value))
		}
		v.Left(proving.OncePath+"/lock", 0, "it is over")
		require.NoError(t, os[1].Reset(context.Background()))
		_, err := os[1].TryDoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, proving.ErrTest })
		require.ErrorIs(t, err, proving.ErrTest)
		v.Left(proving.OncePath+"/lock", 0, "it is over")
	})
}
