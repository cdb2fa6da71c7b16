package recipes_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance032ADowngradeKeepsWritersOutAndLetsReadersIn(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(3)
		for range 2 { // twice in a row
			write := v.get(rw[0].LockContext)
			w := call(context.Background(), rw[1].LockContext)
			v.settled(lockPath, 2)
			read, err := rw[0].Downgrade(context.Background(), write)
			require.NoError(t, err)
			require.ErrorIs(t, write.Err(), zksync.ErrReleased)
			require.True(t, read.Valid())
			require.Positive(t, read.Token().Compare(write.Token()))
			v.settled(lockPath, 2)
			require.True(t, w.pending())
			require.NoError(t, read.Unlock())
			next := v.granted(w)
			require.Positive(t, next.Token().Compare(read.Token()))
			require.NoError(t, next.Unlock())

			write = v.get(rw[0].LockContext)
			read, err = rw[0].Downgrade(context.Background(), write)
			require.NoError(t, err)
			require.NoError(t, zksync.Verify(context.Background(), v.session(), lockPath, read.Token()))
			v.flush()
			list, err := rw[1].Contenders(context.Background())
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, read.Token(), list[0].Token)
			require.Equal(t, zksync.Held, list[0].State)
			also := v.get(rw[2].RLockContext)
			require.NoError(t, also.Unlock())
			require.NoError(t, read.Unlock())
			v.queued(lockPath, 0)
		}
	})
}

// The writer directly behind, and one far behind who already knows that the writer is the head.
func TestAcceptance123ADowngradeKeepsOutWhoeverIsAboutToBeGrantedWithoutARequest(t *testing.T) {
	for _, waiters := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				rw := v.rws(waiters + 1)
				write := v.get(rw[0].LockContext)
				var queue []*attempt
				for i, m := range rw[1:] {
					queue = append(queue, call(context.Background(), m.LockContext))
					v.settled(lockPath, i+2)
				}
				read, err := rw[0].Downgrade(context.Background(), write)
				require.NoError(t, err)
				v.settled(lockPath, waiters+1)
				for _, a := range queue {
					require.True(t, a.pending())
				}
				token := read.Token()
				require.NoError(t, read.Unlock())
				for _, a := range queue {
					l := v.granted(a)
					require.Positive(t, l.Token().Compare(token))
					token = l.Token()
					require.NoError(t, l.Unlock())
				}
			})
		})
	}
}

func TestAcceptance123APlainMutexOnTheSamePathStaysOutToo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(1)[0]
		write := v.get(rw.LockContext)
		m := begin(context.Background(), v.mutexes(1)[0])
		v.settled(lockPath, 2)
		read, err := rw.Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.settled(lockPath, 2)
		require.True(t, m.pending())
		require.NoError(t, read.Unlock())
		require.NoError(t, v.granted(m).Unlock())
	})
}

// Where numbers do not order the queue any more, the writer's node stays.
func TestAcceptance123ADowngradeAtTheEndOfTheSequenceNumbers(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		v.srv.SetSequence(lockPath, math.MaxInt32)
		rw := v.rws(3)
		write := v.get(rw[0].LockContext)
		w := call(context.Background(), rw[1].LockContext)
		v.settled(lockPath, 2)
		read, err := rw[0].Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.settled(lockPath, 2)
		require.True(t, w.pending())
		require.Positive(t, read.Token().Compare(write.Token()))
		require.NoError(t, read.Unlock())
		l := v.granted(w)
		require.Positive(t, l.Token().Compare(read.Token()))
		require.NoError(t, l.Unlock())
		v.queued(lockPath, 0)
	})
}
