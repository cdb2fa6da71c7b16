package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
)

// An administrator takes the permission to read the base node away after the first use. Then the servers refuse the check of the number.
func TestAnAcquireThatMayNotReadTheBaseNodeAnyMoreFails(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w := zksemaphore.NewWeighted(v.Session(), "/semaphores/a", 2)
		l, err := w.AcquireLease(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		v.Server.SetACL("/semaphores/a", zk.DigestACL(zk.PermAll, "u", "p")...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err = w.AcquireLease(ctx, 1)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Less(t, time.Since(start), time.Second)
	})
}
