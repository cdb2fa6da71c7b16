package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestLockingAgainWhileTheLockLingersAllocatesTheLeaseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := zksync.NewMutex(zktest.Run(t).Session(t), "/locks/a", zksync.WithLinger(time.Minute))
		for name, relock := range map[string]func(){
			"lease": func() {
				l, err := m.LockContext(context.Background())
				if err != nil || l.Unlock() != nil {
					t.Error("lost or refused", err)
				}
			},
			"try": func() {
				l, err := m.TryLockContext(context.Background())
				if err != nil || l.Unlock() != nil {
					t.Error("lost or refused", err)
				}
			},
			"drop-in": func() {
				m.Lock()
				m.Unlock()
			},
		} {
			relock() // from now on it lingers
			require.Equal(t, 1.0, testing.AllocsPerRun(2000, relock), name)
		}
	})
}
