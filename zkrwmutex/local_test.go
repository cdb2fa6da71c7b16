package zkrwmutex_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zktest"
)

// Besides the lease there is its context, with which LockContext finds out that its caller reads. In
// a bubble no time passes, so the node of the first is young enough to join.
func TestAReaderThatJoinsAllocatesItsLeaseAndItsContextOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rw := zkrwmutex.New(zktest.Run(t).Session(t), "/locks/a")
		first, err := rw.RLockContext(context.Background())
		require.NoError(t, err)
		require.Equal(t, 2.0, testing.AllocsPerRun(2000, func() {
			l, err := rw.RLockContext(context.Background())
			if err != nil || l.Unlock() != nil {
				t.Error("lost or refused", err)
			}
		}))
		require.NoError(t, first.Unlock())
	})
}
