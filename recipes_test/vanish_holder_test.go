package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// holders is everything that holds a node: each takes a hold that is some time old already, or none,
// and nobody asks for its Done or Context.
var holders = map[string]func(v *env, s *zksync.Session) *zksync.Lease{
	"Mutex": func(v *env, s *zksync.Session) *zksync.Lease {
		return v.lock(zksync.NewMutex(s, lockPath))
	},
	"Mutex.Lock": func(v *env, s *zksync.Session) *zksync.Lease {
		m := zksync.NewMutex(s, lockPath)
		m.Lock()
		return m.Lease()
	},
	"Mutex.TryLockContext": func(v *env, s *zksync.Session) *zksync.Lease {
		return v.get(zksync.NewMutex(s, lockPath).TryLockContext)
	},
	"a waiter": func(v *env, s *zksync.Session) *zksync.Lease {
		holder := v.lock(zksync.NewMutex(v.session(), lockPath))
		next := v.line(zksync.NewMutex(s, lockPath))[0]
		require.NoError(v.t, holder.Unlock())
		return v.granted(next)
	},
	"a hand-over": func(v *env, s *zksync.Session) *zksync.Lease {
		m := zksync.NewMutex(s, lockPath)
		holder := v.lock(m)
		next := begin(context.Background(), m)
		v.quiet()
		require.NoError(v.t, holder.Unlock())
		l := v.granted(next)
		require.Equal(v.t, holder.Path(), l.Path())
		return l
	},
	"a lingering place": func(v *env, s *zksync.Session) *zksync.Lease {
		m := zksync.NewMutex(s, lockPath, zksync.WithLinger(time.Hour))
		before := v.lock(m)
		require.NoError(v.t, before.Unlock())
		l := v.lock(m)
		require.Equal(v.t, before.Path(), l.Path())
		return l
	},
	"RWMutex for writing": func(v *env, s *zksync.Session) *zksync.Lease {
		return v.get(zkrwmutex.New(s, lockPath).LockContext)
	},
	"RWMutex for reading": func(v *env, s *zksync.Session) *zksync.Lease {
		return v.get(zkrwmutex.New(s, lockPath).RLockContext)
	},
	"TryRLockContext": func(v *env, s *zksync.Session) *zksync.Lease {
		return v.get(zkrwmutex.New(s, lockPath).TryRLockContext)
	},
	"a downgrade": func(v *env, s *zksync.Session) *zksync.Lease {
		rw := zkrwmutex.New(s, lockPath)
		write := v.get(rw.LockContext)
		return v.get(func(ctx context.Context) (*zksync.Lease, error) { return rw.Downgrade(ctx, write) })
	},
	"reentrant.Mutex": func(v *env, s *zksync.Session) *zksync.Lease {
		m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
		_, err := m.LockContext(context.Background())
		require.NoError(v.t, err)
		l, err := m.LockContext(context.Background())
		require.NoError(v.t, err)
		return l
	},
	"Weighted": func(v *env, s *zksync.Session) *zksync.Lease {
		l, err := zksemaphore.NewWeighted(s, lockPath, 3).AcquireLease(context.Background(), 2)
		require.NoError(v.t, err)
		return l
	},
	"Election": func(v *env, s *zksync.Session) *zksync.Lease {
		return v.get(zkelection.New(s, lockPath, zkelection.Candidate{ID: "me"}).Campaign)
	},
}

// The servers grant to the next at once. The holder finds out when it looks, half a second after it was
// granted, or from its watch.
func TestAHolderWhoseNodeIsRemovedByHandIsToldWithinASecondWithoutAsking(t *testing.T) {
	const look = 500 * time.Millisecond
	for name, get := range holders {
		for _, after := range []time.Duration{0, 100 * time.Millisecond, look, 10 * time.Second} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				inProcess(t, func(t *testing.T, v *env) {
					l := get(v, v.session())
					time.Sleep(after)
					v.quiet()
					require.True(t, l.Valid())
					v.remove(l.Path())
					if after < look {
						time.Sleep(look - after - 1)
						require.True(t, l.Valid(), "how could it know")
						time.Sleep(time.Nanosecond)
					}
					synctest.Wait()
					require.False(t, l.Valid())
					require.ErrorIs(t, l.Err(), zksync.ErrLost)
					v.awaits(l.Done(), "being told")
					require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
				})
			})
		}
	}
}

// A place that nobody holds at the moment is given to nobody if it has gone.
func TestALingeringPlaceWhoseNodeIsRemovedByHandIsGrantedToNobody(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithLinger(time.Hour))
		l := v.lock(m)
		require.NoError(t, l.Unlock())
		time.Sleep(time.Second)
		v.remove(l.Path())
		v.quiet()
		again := v.lock(m)
		require.NotEqual(t, l.Path(), again.Path())
		require.NoError(t, again.Unlock())
	})
}

// What is told of the node while a downgrade is under way says nothing. When it fails, the holder looks.
func TestAWriterWhoseNodeIsRemovedDuringADowngradeThatFailsIsTold(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		rw := zkrwmutex.New(s, lockPath)
		l := v.get(rw.LockContext)
		l.Done()
		v.quiet()
		v.srv.Intercept(zktest.On(zktest.Multi, lockPath+"/*").Nth(1).Delay(time.Second).Error(zktest.CodeBadArguments)) // bad arguments
		failed := call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return rw.Downgrade(ctx, l) })
		v.quiet()
		v.remove(l.Path())
		require.Error(t, v.failed(failed))
		v.quiet()
		require.False(t, l.Valid())
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
	})
}

// The watch is off the way to a grant, costs one request for as long as the node is held, whoever of the
// process holds it, and goes with the node.
func TestWatchingTheOwnNodeCostsOneRequestForEachNodeThatIsHeldForLong(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		s := v.session(zksync.WithTimeout(time.Hour)) // no heartbeats
		m := zksync.NewMutex(s, lockPath, zksync.WithLinger(time.Hour), zksync.WithHandover(100))
		short := zksync.NewMutex(s, "/locks/b")
		v.put("/locks/b", "")
		v.costs(2*10, func() {
			for range 10 {
				l := v.lock(short)
				time.Sleep(499 * time.Millisecond)
				require.NoError(t, l.Unlock())
			}
		}, "held for less than half a second")
		require.Zero(t, v.srv.Watches())
		v.costs(3, func() {
			l := v.lock(short)
			time.Sleep(time.Minute)
			zktest.CheckWatched(t, v.srv, l.Path(), 1)
			l.Done()
			require.NoError(t, l.Unlock())
		}, "held for a minute")
		require.Zero(t, v.srv.Watches())
		holder := v.lock(short)
		next := begin(context.Background(), zksync.NewMutex(v.session(zksync.WithTimeout(time.Hour)), "/locks/b"))
		v.quiet()
		require.NoError(t, holder.Unlock())
		waited := v.granted(next)
		v.costs(0, func() { time.Sleep(time.Minute) }, "one who has waited watches its own node")
		zktest.CheckWatched(t, v.srv, waited.Path(), 1)
		require.NoError(t, waited.Unlock())
		v.costs(1+1+1, func() {
			for range 10 {
				l := v.lock(m)
				time.Sleep(time.Minute)
				zktest.CheckWatched(t, v.srv, l.Path(), 1)
				require.NoError(t, l.Unlock())
			}
		}, "one entry, its watch, and the child watch of lingering")
	})
}

// Locks that are held for long are watched each, once, and again after a disconnect.
func TestThousandHeldLocksHaveAThousandWatches(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const n = 1000
		s := v.session(zksync.WithTimeout(time.Hour))
		ms := make([]*zksync.Mutex, n)
		leases := make([]*zksync.Lease, n)
		for i := range ms {
			ms[i] = zksync.NewMutex(s, lockPath+"/"+string(rune('a'+i%26))+time.Duration(i).String())
			leases[i] = v.lock(ms[i])
		}
		v.costs(n, func() { time.Sleep(time.Minute) }, "one read each")
		require.Equal(t, n, v.srv.Watches())
		v.costs(0, func() { time.Sleep(time.Minute) })
		v.costsAtMost(2*n, func() {
			v.srv.Disconnect(s.ID())
			time.Sleep(time.Minute)
		}, "one read each, or two for one that is sent while the connection ends")
		require.Equal(t, n, v.srv.Watches())
		for _, l := range leases {
			require.True(t, l.Valid())
			require.NoError(t, l.Unlock())
		}
		require.Zero(t, v.srv.Watches())
	})
}
