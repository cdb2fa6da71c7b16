package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// holders is everything that holds a node: each takes a hold that is some time old already, or none,
// and nobody asks for its Done or Context.
var holders = map[string]func(v *proving.Env, s *zksync.Session) *zksync.Lease{
	"Mutex": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		return v.Lock(zksync.NewMutex(s, proving.LockPath))
	},
	"Mutex.Lock": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		m := zksync.NewMutex(s, proving.LockPath)
		m.Lock()
		return m.Lease()
	},
	"Mutex.TryLockContext": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		return v.Get(zksync.NewMutex(s, proving.LockPath).TryLockContext)
	},
	"a waiter": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		holder := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		next := v.Line(zksync.NewMutex(s, proving.LockPath))[0]
		require.NoError(v.T, holder.Unlock())
		return v.Granted(next)
	},
	"a hand-over": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		m := zksync.NewMutex(s, proving.LockPath)
		holder := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		require.NoError(v.T, holder.Unlock())
		l := v.Granted(next)
		require.Equal(v.T, holder.Node(), l.Node())
		return l
	},
	"a lingering place": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithLinger(time.Hour))
		before := v.Lock(m)
		require.NoError(v.T, before.Unlock())
		l := v.Lock(m)
		require.Equal(v.T, before.Node(), l.Node())
		return l
	},
	"RWMutex for writing": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		return v.Get(zkrwmutex.New(s, proving.LockPath).LockContext)
	},
	"RWMutex for reading": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		return v.Get(zkrwmutex.New(s, proving.LockPath).RLockContext)
	},
	"TryRLockContext": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		return v.Get(zkrwmutex.New(s, proving.LockPath).TryRLockContext)
	},
	"a downgrade": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		rw := zkrwmutex.New(s, proving.LockPath)
		write := v.Get(rw.LockContext)
		return v.Get(func(ctx context.Context) (*zksync.Lease, error) { return rw.Downgrade(ctx, write) })
	},
	"reentrant.Mutex": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		_, err := m.LockContext(context.Background())
		require.NoError(v.T, err)
		l, err := m.LockContext(context.Background())
		require.NoError(v.T, err)
		return l
	},
	"Weighted": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		l, err := zksemaphore.NewWeighted(s, proving.LockPath, 3).AcquireLease(context.Background(), 2)
		require.NoError(v.T, err)
		return l
	},
	"Election": func(v *proving.Env, s *zksync.Session) *zksync.Lease {
		return v.Get(zkelection.New(s, proving.LockPath, zkelection.Candidate{ID: "me"}).Campaign)
	},
}

// The servers grant to the next at once. The holder finds out when it looks, half a second after it was
// granted, or from its watch.
func TestAHolderWhoseNodeIsRemovedByHandIsToldWithinASecondWithoutAsking(t *testing.T) {
	const look = 500 * time.Millisecond
	for name, get := range holders {
		for _, after := range []time.Duration{0, 100 * time.Millisecond, look, 10 * time.Second} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					l := get(v, v.Session())
					time.Sleep(after)
					v.Quiet()
					require.True(t, l.Valid())
					v.Remove(l.Node())
					if after < look {
						time.Sleep(look - after - 1)
						require.True(t, l.Valid(), "how could it know")
						time.Sleep(time.Nanosecond)
					}
					synctest.Wait()
					require.False(t, l.Valid())
					require.ErrorIs(t, l.Err(), zksync.ErrLost)
					v.Awaits(l.Done(), "being told")
					require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
				})
			})
		}
	}
}

// A place that nobody holds at the moment is given to nobody if it has gone.
func TestALingeringPlaceWhoseNodeIsRemovedByHandIsGrantedToNobody(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour))
		l := v.Lock(m)
		require.NoError(t, l.Unlock())
		time.Sleep(time.Second)
		v.Remove(l.Node())
		v.Quiet()
		again := v.Lock(m)
		require.NotEqual(t, l.Node(), again.Node())
		require.NoError(t, again.Unlock())
	})
}

// What is told of the node while a downgrade is under way says nothing. When it fails, the holder looks.
func TestAWriterWhoseNodeIsRemovedDuringADowngradeThatFailsIsTold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		rw := zkrwmutex.New(s, proving.LockPath)
		l := v.Get(rw.LockContext)
		l.Done()
		v.Quiet()
		v.Server.Intercept(zktest.On(zktest.Multi, proving.LockPath+"/*").Nth(1).Delay(time.Second).Error(zktest.CodeBadArguments)) // bad arguments
		failed := proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return rw.Downgrade(ctx, l) })
		v.Quiet()
		v.Remove(l.Node())
		require.Error(t, v.Failed(failed))
		v.Quiet()
		require.False(t, l.Valid())
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
	})
}

// The watch is off the way to a grant, costs one request for as long as the node is held, whoever of the
// process holds it, and goes with the node.
func TestWatchingTheOwnNodeCostsOneRequestForEachNodeThatIsHeldForLong(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		s := v.Session(zksync.WithTimeout(time.Hour)) // no heartbeats
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithLinger(time.Hour), zksync.WithHandover(100))
		short := zksync.NewMutex(s, "/locks/b")
		v.Put("/locks/b", "")
		v.Costs(1+2*10, func() {
			for range 10 {
				l := v.Lock(short)
				time.Sleep(499 * time.Millisecond)
				require.NoError(t, l.Unlock())
			}
		}, "held for less than half a second, after the first look at the path")
		require.Zero(t, v.Server.Watches())
		v.Costs(3, func() {
			l := v.Lock(short)
			time.Sleep(time.Minute)
			zktest.CheckWatched(t, v.Server, l.Node(), 1)
			l.Done()
			require.NoError(t, l.Unlock())
		}, "held for a minute")
		require.Zero(t, v.Server.Watches())
		holder := v.Lock(short)
		next := proving.Begin(context.Background(), zksync.NewMutex(v.Session(zksync.WithTimeout(time.Hour)), "/locks/b"))
		v.Quiet()
		require.NoError(t, holder.Unlock())
		waited := v.Granted(next)
		v.Costs(0, func() { time.Sleep(time.Minute) }, "one who has waited watches its own node")
		zktest.CheckWatched(t, v.Server, waited.Node(), 1)
		require.NoError(t, waited.Unlock())
		v.Costs(1+1+1+1, func() {
			for range 10 {
				l := v.Lock(m)
				time.Sleep(time.Minute)
				zktest.CheckWatched(t, v.Server, l.Node(), 1)
				require.NoError(t, l.Unlock())
			}
		}, "the first look at the path, one entry, its watch, and the child watch of lingering")
	})
}

// Locks that are held for long are watched each, once, and again after a disconnect.
func TestThousandHeldLocksHaveAThousandWatches(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const n = 1000
		s := v.Session(zksync.WithTimeout(time.Hour))
		ms := make([]*zksync.Mutex, n)
		leases := make([]*zksync.Lease, n)
		for i := range ms {
			ms[i] = zksync.NewMutex(s, proving.LockPath+"/"+string(rune('a'+i%26))+time.Duration(i).String())
			leases[i] = v.Lock(ms[i])
		}
		v.Costs(n, func() { time.Sleep(time.Minute) }, "one read each")
		require.Equal(t, n, v.Server.Watches())
		v.Costs(0, func() { time.Sleep(time.Minute) })
		v.CostsAtMost(2*n, func() {
			v.Server.Disconnect(s.ID())
			time.Sleep(time.Minute)
		}, "one read each, or two for one that is sent while the connection ends")
		require.Equal(t, n, v.Server.Watches())
		for _, l := range leases {
			require.True(t, l.Valid())
			require.NoError(t, l.Unlock())
		}
		require.Zero(t, v.Server.Watches())
	})
}
