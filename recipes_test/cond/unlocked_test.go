package cond_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A caller of sync.Cond may signal without the lock, for example after Unlock.
func TestSignalAndBroadcastNeedNoLock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ws := sides(v, 5)
		var done []<-chan struct{}
		for _, w := range ws[:4] {
			done = append(done, waits(v, w, nothing))
		}
		ws[4].c.Signal()
		v.Awaits(done[0], "the oldest")
		v.Settled(proving.CondPath, 3)
		ws[4].c.Broadcast()
		for _, d := range done {
			v.Awaits(d, "all")
		}
		v.Queued(proving.CondPath, 0)
		ws[4].c.Signal() // nobody waits
	})
}

// The lock is held elsewhere meanwhile, and by a process that is itself about to wait.
func TestASignalWithoutTheLockDoesNotWaitForIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ws := sides(v, 3)
		done := waits(v, ws[0], nothing)
		l := v.Lock(ws[1].m)
		ws[2].c.Signal()
		later := proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return ws[1].c.WaitContext(ctx, l) })
		v.Awaits(done, "the waiter")
		v.Quiet()
		require.True(t, later.Pending(), "it began to wait after the signal")
		ws[2].c.Signal()
		require.NoError(t, v.Granted(later).Unlock())
	})
}

// The server of the caller does not know yet of the waiter.
func TestASignalWithoutTheLockFindsAWaiterOnServersThatLag(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		on := func(member int) (*zksync.Mutex, *zkcond.Cond) {
			m := zksync.NewMutex(e.SessionAt(t, member), proving.LockPath)
			return m, zkcond.New(m, proving.CondPath)
		}
		_, lagging := on(0)
		m, c := on(2)
		catchUp := e.Lag(0)
		woken := make(chan struct{})
		go func() {
			defer close(woken)
			m.Lock()
			defer m.Unlock()
			c.Wait()
		}()
		time.Sleep(time.Second)
		time.AfterFunc(time.Second, catchUp)
		lagging.Signal()
		time.Sleep(time.Second)
		require.True(t, proving.IsClosed(woken))
	})
}

// A process whose hold was lost still has it until Unlock. Others wait by now.
func TestASignalBesideALostHoldReachesWaitersOfLaterHolds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ws := sides(v, 2)
		ws[1].m.Lock()
		lost := ws[1].m.Lease()
		v.Server.Expire(ws[1].s.ID())
		v.Later()
		require.ErrorIs(t, lost.Err(), zksync.ErrLost)
		done := waits(v, ws[0], nothing)
		ws[1].c.Signal()
		v.Awaits(done, "the waiter")
		ws[1].m.Unlock()
	})
}

// The reply to the write is lost, and a third waiter begins before the caller looks again.
func TestARepeatedSignalWithoutTheLockIsNotForLaterWaiters(t *testing.T) {
	for _, fate := range []func(*zktest.Rule) *zktest.Rule{(*zktest.Rule).LoseReply, (*zktest.Rule).LoseRequest} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ws := sides(v, 3)
			done := waits(v, ws[0], nothing)
			v.Server.Intercept(fate(zktest.On(zktest.SetData, proving.CondPath).Of(ws[2].s.ID()).Times(1)))
			sync := v.Server.Intercept(zktest.On(zktest.Sync, proving.CondPath).Of(ws[2].s.ID()).Nth(2).Hold())
			signalled := make(chan struct{})
			go func() { defer close(signalled); ws[2].c.Broadcast() }()
			require.NoError(t, sync.WaitHeld(context.Background()))
			l := v.Lock(ws[1].m)
			later := proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return ws[1].c.WaitContext(ctx, l) })
			v.Quiet()
			sync.Release()
			v.Awaits(signalled, "Broadcast")
			v.Awaits(done, "the first")
			v.Quiet()
			require.True(t, later.Pending())
			ws[2].signals()
			require.NoError(t, v.Granted(later).Unlock())
		})
	}
}

// Every fault of every request of a signal that is sent after the Unlock.
func TestEveryFaultLeavesASignalWithoutTheLockSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ws := sides(v, 2)
		return func(name string) {
			woken := make(chan struct{})
			items := 0 // under the lock
			go func() {
				defer close(woken)
				ws[0].m.Lock()
				defer ws[0].m.Unlock()
				for items == 0 {
					ws[0].c.Wait()
				}
				items--
			}()
			time.Sleep(10 * time.Millisecond)
			ws[1].m.Lock()
			items++
			ws[1].m.Unlock()
			ws[1].c.Signal()
			v.Awaits(woken, name)
			v.Later()
			require.Empty(t, v.Server.Children(proving.LockPath), name)
			require.Empty(t, v.Server.Children(proving.CondPath), name)
		}
	})
}

func TestWhatASignalWithoutTheLockCosts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		c := zkcond.New(m, proving.CondPath)
		v.Put(proving.CondPath, "")
		v.Costs(1+2, c.Signal, "the first look at the path, a sync, and a look")
		m2 := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		done := waits(v, &side{m: m2, c: zkcond.New(m2, proving.CondPath)}, nothing)
		v.Costs(4+4, func() {
			c.Signal()
			v.Awaits(done, "the waiter")
			v.Quiet()
		}, "a sync, and three as under the lock; the waiter reads it, locks, uses it, and unlocks")
	})
}
