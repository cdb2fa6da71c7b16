package rwmutex_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance032ADowngradeKeepsWritersOutAndLetsReadersIn(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 3)
		for range 2 { // twice in a row
			write := v.Get(rw[0].LockContext)
			w := proving.Call(context.Background(), rw[1].LockContext)
			v.Settled(proving.LockPath, 2)
			read, err := rw[0].Downgrade(context.Background(), write)
			require.NoError(t, err)
			require.ErrorIs(t, write.Err(), zksync.ErrReleased)
			require.True(t, read.Valid())
			require.Positive(t, read.Token().Compare(write.Token()))
			v.Settled(proving.LockPath, 2)
			require.True(t, w.Pending())
			require.NoError(t, read.Unlock())
			next := v.Granted(w)
			require.Positive(t, next.Token().Compare(read.Token()))
			require.NoError(t, next.Unlock())

			write = v.Get(rw[0].LockContext)
			read, err = rw[0].Downgrade(context.Background(), write)
			require.NoError(t, err)
			require.NoError(t, zksync.Verify(context.Background(), v.Session(), proving.LockPath, read.Token()))
			v.Flush()
			list, err := rw[1].Contenders(context.Background())
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, read.Token(), list[0].Token)
			require.Equal(t, zksync.Held, list[0].State)
			also := v.Get(rw[2].RLockContext)
			require.NoError(t, also.Unlock())
			require.NoError(t, read.Unlock())
			v.Queued(proving.LockPath, 0)
		}
	})
}

// The writer directly behind, and one far behind who already knows that the writer is the head.
func TestAcceptance123ADowngradeKeepsOutWhoeverIsAboutToBeGrantedWithoutARequest(t *testing.T) {
	for _, waiters := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				rw := rws(v, waiters+1)
				write := v.Get(rw[0].LockContext)
				var queue []*proving.Attempt
				for i, m := range rw[1:] {
					queue = append(queue, proving.Call(context.Background(), m.LockContext))
					v.Settled(proving.LockPath, i+2)
				}
				read, err := rw[0].Downgrade(context.Background(), write)
				require.NoError(t, err)
				v.Settled(proving.LockPath, waiters+1)
				for _, a := range queue {
					require.True(t, a.Pending())
				}
				token := read.Token()
				require.NoError(t, read.Unlock())
				for _, a := range queue {
					l := v.Granted(a)
					require.Positive(t, l.Token().Compare(token))
					token = l.Token()
					require.NoError(t, l.Unlock())
				}
			})
		})
	}
}

func TestAcceptance123APlainMutexOnTheSamePathStaysOutToo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 1)[0]
		write := v.Get(rw.LockContext)
		m := proving.Begin(context.Background(), v.Mutexes(1)[0])
		v.Settled(proving.LockPath, 2)
		read, err := rw.Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.Settled(proving.LockPath, 2)
		require.True(t, m.Pending())
		require.NoError(t, read.Unlock())
		require.NoError(t, v.Granted(m).Unlock())
	})
}

// Where numbers do not order the queue any more, the writer's node stays.
func TestAcceptance123ADowngradeAtTheEndOfTheSequenceNumbers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		v.Server.SetSequence(proving.LockPath, math.MaxInt32)
		rw := rws(v, 3)
		write := v.Get(rw[0].LockContext)
		w := proving.Call(context.Background(), rw[1].LockContext)
		v.Settled(proving.LockPath, 2)
		read, err := rw[0].Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.Settled(proving.LockPath, 2)
		require.True(t, w.Pending())
		require.Positive(t, read.Token().Compare(write.Token()))
		require.NoError(t, read.Unlock())
		l := v.Granted(w)
		require.Positive(t, l.Token().Compare(read.Token()))
		require.NoError(t, l.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance113ADowngradeKeepsItsDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := zkrwmutex.New(v.Session(), proving.LockPath)
		l := v.Granted(proving.Call(context.Background(), rw.LockContext))
		thaw := v.Server.Freeze()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := rw.Downgrade(ctx, l)
		took := time.Since(start)
		thaw()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, took, 400*time.Millisecond)
		v.Later()
	})
}

// There the writer's node stays, and is not taken for a hold for writing by those who come in the form without leases.
func TestAReaderMayJoinADowngradeAtTheEndOfTheSequenceNumbers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		v.Server.SetSequence(proving.LockPath, math.MaxInt32)
		rw := rws(v, 1)[0]
		read, err := rw.Downgrade(context.Background(), v.Get(rw.LockContext))
		require.NoError(t, err)
		joined := make(chan struct{})
		go func() {
			rw.RLock()
			close(joined)
		}()
		synctest.Wait()
		require.NoError(t, read.Unlock())
		<-joined // not the reader who waits for itself
		rw.RUnlock()
		v.Queued(proving.LockPath, 0)
	})
}

func TestAReaderDoesNotJoinADowngradeBeforeAWriterOfItsProcessWhoWaits(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 1)[0]
		write := v.Get(rw.LockContext)
		w := proving.Call(context.Background(), rw.LockContext)
		synctest.Wait()
		read, err := rw.Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.Settled(proving.LockPath, 2) // the writer's node is there, and no time has passed
		r := proving.Call(context.Background(), rw.RLockContext)
		synctest.Wait()
		require.True(t, r.Pending())
		require.NoError(t, read.Unlock())
		require.NoError(t, v.Granted(w).Unlock())
		require.NoError(t, v.Granted(r).Unlock())
	})
}

func TestTheHoldOfALockIsNoneForWritingOnceItsLeaseIsDowngraded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 1)[0]
		rw.Lock()
		read, err := rw.Downgrade(context.Background(), rw.Lease())
		require.NoError(t, err)
		require.PanicsWithValue(t, "zkrwmutex: Unlock of unlocked RWMutex", rw.Unlock)
		require.NoError(t, read.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
