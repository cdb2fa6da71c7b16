package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// holding acquires all three permits of a semaphore without a lease. The other one looks on.
func holding(v *proving.Env) (holder, other *zksemaphore.Weighted, s *zksync.Session) {
	v.T.Helper()
	other, s = sems(v, 1, 3)[0], v.Session()
	holder = zksemaphore.NewWeighted(s, proving.SemPath, 3)
	require.NoError(v.T, holder.Acquire(context.Background(), 3))
	return holder, other, s
}

// What a Release cannot finish, because the servers are out of reach for a while, the session does.
func TestReleasesWithoutAConnectionKeepTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		released []int64
		free     int64
	}{
		"a part":              {[]int64{1}, 1},
		"two parts":           {[]int64{1, 1}, 2},
		"a part and the rest": {[]int64{1, 2}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				holder, other, s := holding(v)
				left := int64(3)
				heal := v.Server.Partition(s.ID())
				for _, n := range c.released {
					start := time.Now()
					holder.Release(n)
					v.Took(start, time.Second, "Release")
					left -= n
				}
				time.Sleep(time.Second)
				available(v, 0, other)
				heal()
				time.Sleep(time.Second)
				require.NotZero(t, s.ID(), "the session goes on")
				available(v, c.free, other)
				require.PanicsWithValue(t, "semaphore: released more than held", func() { holder.Release(left + 1) })
				holder.Release(left)
				available(v, 3, other)
				v.Queued(proving.SemQueue, 0)
			})
		})
	}
}

// Only the end of the session ends the hold, and then all of it.
func TestAReleaseThatTheSessionDoesNotSurviveFreesAll(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder, other, s := holding(v)
		heal := v.Server.Partition(s.ID())
		holder.Release(1)
		all := v.Granted(want(context.Background(), other, 3)) // once the servers have given the session up
		heal()
		v.Later()
		available(v, 0, other)
		holder.Release(2)
		require.NoError(t, all.Unlock())
		require.NoError(t, holder.Acquire(context.Background(), 3))
		holder.Release(3)
		v.Queued(proving.SemQueue, 0)
	})
}

// Servers that refuse to take a part back, because of an access control list for instance, take nothing.
func TestAReleaseThatIsRefusedKeepsTheHold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder, other, s := holding(v)
		allow := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && q.Session == s.ID() {
				return zktest.Verdict{Fate: zktest.Fail, Code: -102} // NoAuth
			}
			return zktest.Verdict{}
		})
		holder.Release(1)
		v.Later()
		available(v, 0, other)
		allow()
		holder.Release(1)
		available(v, 2, other) // both are given back together
		holder.Release(1)
		v.Queued(proving.SemQueue, 0)
	})
}

// An answer that is lost leaves open whether the servers took the part back.
func TestAReleaseWhoseAnswerIsLostTakesBackWhatItSays(t *testing.T) {
	for _, lose := range []func(*zktest.Rule) *zktest.Rule{(*zktest.Rule).LoseRequest, (*zktest.Rule).LoseReply} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			holder, other, _ := holding(v)
			v.Server.Intercept(lose(zktest.On(zktest.Multi, proving.SemQueue+"/**").Times(1)))
			holder.Release(2)
			v.Later()
			available(v, 2, other)
			v.Queued(proving.SemQueue, 1)
			holder.Release(1)
			v.Queued(proving.SemQueue, 0)
		})
	}
}

func TestCloseDoesNotWaitForAReleaseThatIsUnderWay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder, other, s := holding(v)
		heal := v.Server.Partition(s.ID())
		holder.Release(1)
		start := time.Now()
		require.NoError(t, s.Close())
		v.Took(start, 2*time.Second, "Close")
		heal()
		require.NoError(t, v.Granted(want(context.Background(), other, 3)).Unlock())
		holder.Release(2) // of what is not held any more, but was not given back either
	})
}

// The answer is lost, and asking again is refused: then only a look tells.
func TestAReleaseThatIsRefusedAfterALostAnswerIsLookedFor(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder, other, s := holding(v)
		asked := 0
		allow := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Multi || q.Session != s.ID() {
				return zktest.Verdict{}
			}
			if asked++; asked == 1 {
				return zktest.Verdict{Fate: zktest.LoseReply}
			}
			return zktest.Verdict{Fate: zktest.Fail, Code: -102} // NoAuth
		})
		holder.Release(1)
		v.Later()
		allow()
		require.Equal(t, 2, asked)
		available(v, 1, other)
		holder.Release(2)
		available(v, 3, other)
		v.Queued(proving.SemQueue, 0)
	})
}

// A hold that ends while part of it is on its way back ends with the rest.
func TestAMaximumHoldEndsTheRestOfARelease(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		other, s := sems(v, 1, 3)[0], v.Session()
		holder := zksemaphore.NewWeighted(s, proving.SemPath, 3, zksync.WithMaxHold(2*time.Second))
		require.NoError(t, holder.Acquire(context.Background(), 3))
		heal := v.Server.Partition(s.ID())
		holder.Release(1)
		time.Sleep(1500 * time.Millisecond)
		heal()
		time.Sleep(time.Second)
		available(v, 3, other)
		holder.Release(2)
	})
}

// The request that gives a part back lies in the queue of a server while its session goes elsewhere, where it is
// refused. So the hold stays what it was; or it ends, if it cannot be found out whether a part was given back. The request
// is applied when the session comes back: then nobody has what it leaves of the hold.
func TestAPartThatIsGivenBackLateLeavesNoPermitsTaken(t *testing.T) {
	for _, ends := range []bool{false, true} {
		proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
			s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
			holder := zksemaphore.NewWeighted(s, proving.SemPath, 3)
			other := zksemaphore.NewWeighted(e.SessionAt(t, 2), proving.SemPath, 3)
			require.NoError(t, holder.Acquire(t.Context(), 3))
			allow := e.Server(2).Refuse()
			late := e.Intercept(zktest.On(zktest.Create, proving.SemQueue+"/*").Of(s.ID()).Nth(1).Hold().Queued())
			refused := e.Intercept(zktest.On(zktest.Create, proving.SemQueue+"/*").Of(s.ID()).Nth(2).Error(zktest.CodeNoAuth)) // NoAuth
			if ends {
				e.Intercept(zktest.On(zktest.Exists, proving.SemQueue+"/*-permit-2-*").Of(s.ID()).Nth(1).Error(zktest.CodeNoAuth))
				e.Intercept(zktest.On(zktest.Delete, proving.SemQueue+"/*-permit-3-*").Of(s.ID()).Nth(3).LoseRequest())
			}
			released := make(chan struct{})
			go func() {
				defer close(released)
				holder.Release(1)
			}()
			require.NoError(t, late.WaitHeld(t.Context()))
			e.Disconnect(s.ID())
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, 1, refused.Fired())
			if !ends {
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
			}
			require.Equal(t, 0, e.At(s.ID()))
			require.Len(t, e.Server(2).Children(proving.SemQueue), 1)
			late.Release()
			allow()
			<-released
			time.Sleep(time.Second)
			require.Empty(t, e.Server(2).Children(proving.SemQueue))
			free, err := other.Available(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 3, free)
		})
	}
}
