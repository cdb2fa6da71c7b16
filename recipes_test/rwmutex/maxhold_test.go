package rwmutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// The bound counts from the grant of the write lease, also at the end of the sequence numbers.
func TestADowngradeDoesNotBeginTheBoundOfAHoldAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := zkrwmutex.New(v.Session(), proving.LockPath, zksync.WithMaxHold(10*time.Second))
		for range 2 {
			write := v.Get(rw.LockContext)
			granted := time.Now()
			time.Sleep(6 * time.Second)
			read, err := rw.Downgrade(context.Background(), write)
			require.NoError(t, err)
			<-read.Done()
			require.ErrorIs(t, read.Err(), zksync.ErrMaxHold)
			v.Took(granted, 10*time.Second, "the hold")
			v.Server.SetSequence(proving.LockPath, 1<<31-1)
		}
	})
}
