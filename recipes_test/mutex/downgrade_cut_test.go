package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAWriterIsNotGrantedBesideAReaderThatCameByADowngradeWhileItWasCutOff(t *testing.T) {
	for behind := range 4 {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			holder := zkrwmutex.New(v.Session(), proving.LockPath)
			l := v.Get(holder.LockContext)
			var all []*proving.Attempt
			var sessions []*zksync.Session
			for i := range behind + 1 {
				s := v.Session()
				sessions = append(sessions, s)
				all = append(all, proving.Call(context.Background(), zkrwmutex.New(s, proving.LockPath).LockContext))
				v.Queued(proving.LockPath, i+2)
			}
			time.Sleep(3 * time.Second) // scouts are watched
			var heals []func()
			for _, s := range sessions {
				heals = append(heals, v.Server.Partition(s.ID()))
			}
			read, err := holder.Downgrade(context.Background(), l)
			require.NoError(t, err)
			time.Sleep(200 * time.Millisecond)
			for i, s := range sessions {
				heals[i]()
				v.Server.Disconnect(s.ID())
			}
			time.Sleep(2 * time.Second)
			for _, a := range all {
				require.True(t, a.Pending())
			}
			require.NoError(t, read.Unlock())
			for _, a := range all {
				v.Unlocks(v.Granted(a), nil)
			}
		})
	}
}

// The connection is cut at every request of the waiter, while the holder downgrades.
func TestAWriterThatIsCutOffAtAnyRequestIsNotGrantedBesideADowngrade(t *testing.T) {
	for after := time.Duration(0); after < 12*time.Millisecond; after += 500 * time.Microsecond {
		for cut := time.Duration(0); cut < 12*time.Millisecond; cut += 500 * time.Microsecond {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				hs, ws := v.Session(), v.Session()
				holder := zkrwmutex.New(hs, proving.LockPath)
				l := v.Get(holder.LockContext)
				v.Server.Delay(ws.ID(), time.Millisecond, time.Millisecond)
				v.Server.Delay(hs.ID(), time.Millisecond, time.Millisecond)
				w := proving.Call(context.Background(), zkrwmutex.New(ws, proving.LockPath).LockContext)
				time.Sleep(cut)
				v.Server.Disconnect(ws.ID())
				time.Sleep(after)
				read, err := holder.Downgrade(context.Background(), l)
				require.NoError(t, err)
				time.Sleep(300 * time.Millisecond)
				require.True(t, w.Pending())
				require.NoError(t, read.Unlock())
				v.Unlocks(v.Granted(w), nil)
			})
		}
	}
}
