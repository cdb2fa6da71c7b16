package rwmutex_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
)

// Writers of one process hand the lock over without a bound until a reader comes, of their process or of another one.
func TestAReaderBesideWritersOfOneProcessIsServedWithinTheBound(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := zkrwmutex.New(v.Session(), proving.LockPath)
		var over atomic.Bool
		nodes, last := 0, "" // only those who hold the lock use them
		for range 4 {
			go func() {
				for !over.Load() {
					l, err := rw.LockContext(context.Background())
					if err != nil {
						return
					}
					if l.Node() != last {
						last = l.Node()
						nodes++
					}
					time.Sleep(100 * time.Microsecond)
					_ = l.Unlock()
				}
			}()
		}
		for i, reader := range []*zkrwmutex.RWMutex{rw, zkrwmutex.New(v.Session(), proving.LockPath)} {
			time.Sleep(100*time.Millisecond + 50*time.Microsecond)
			start := time.Now()
			r := v.Get(reader.RLockContext)
			require.LessOrEqual(t, time.Since(start), 33*100*time.Microsecond)
			require.Equal(t, 1+2*i, nodes)
			require.NoError(t, r.Unlock())
		}
		w := v.Get(rw.LockContext)
		over.Store(true)
		require.NoError(t, w.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
