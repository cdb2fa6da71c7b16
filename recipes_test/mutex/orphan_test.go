package mutex_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const entries = proving.LockPath + "/*"

// fates is what can become of one request.
var fates = map[string]func(r *zktest.Rule) *zktest.Rule{
	"request lost":    (*zktest.Rule).LoseRequest,
	"reply lost":      (*zktest.Rule).LoseReply,
	"inconsistency":   func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeRuntimeInconsistency) },
	"unknown session": func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeUnknownSession) },
	"throttled":       func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeThrottled) },
}

func TestAcceptance019ACreateThatGetsNoAnswerLeavesExactlyOneNode(t *testing.T) {
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(2)
				require.NoError(t, v.Lock(ms[1]).Unlock())
				in := v.Server.Intercept(fate(zktest.On(zktest.Create, entries).Nth(1)))
				l := v.Lock(ms[0])
				require.Equal(t, 1, in.Fired())
				v.Quiet()
				zktest.CheckChildren(t, v.Server, proving.LockPath, l.Node()[len(proving.LockPath)+1:])
				require.NoError(t, l.Unlock())
				v.Quiet()
				zktest.CheckChildren(t, v.Server, proving.LockPath)
				require.NoError(t, v.Lock(ms[1]).Unlock(), "the lock must not be blocked afterwards")
			})
		})
	}
}

func TestAcceptance019AWaitersCreateThatGetsNoAnswerKeepsOnePlace(t *testing.T) {
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(3)
				holder := v.Lock(ms[0])
				v.Server.Intercept(fate(zktest.On(zktest.Create, entries).Nth(1)))
				a := proving.Begin(context.Background(), ms[1])
				time.Sleep(time.Second)
				v.Settled(proving.LockPath, 2)
				b := v.Line(ms[2])[0]
				require.NoError(t, holder.Unlock())
				l := v.Granted(a)
				v.Quiet()
				require.True(t, b.Pending())
				require.NoError(t, l.Unlock())
				require.NoError(t, v.Granted(b).Unlock())
				v.Quiet()
				zktest.CheckChildren(t, v.Server, proving.LockPath)
			})
		})
	}
}

func TestAcceptance019AListingThatGetsNoAnswerEndsNeitherAWaitNorATry(t *testing.T) {
	const often = 8 // a read overlooks four; then a waiter lists again, and a Try begins again
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(3)
				v.Unlocks(ms[1].LockContext(t.Context())) // only a session's first entry has read who is ahead
				holder := v.Lock(ms[0])
				in := v.Server.Intercept(fate(zktest.On(zktest.GetChildren, proving.LockPath).Times(often)))
				a := proving.Begin(context.Background(), ms[1])
				time.Sleep(time.Minute)
				require.Equal(t, often, in.Fired())
				require.True(t, a.Pending())
				require.NoError(t, holder.Unlock())
				l := v.Granted(a)
				in = v.Server.Intercept(fate(zktest.On(zktest.GetChildren, proving.LockPath).Times(often)))
				_, err := ms[2].TryLockContext(context.Background())
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
				require.Equal(t, often, in.Fired())
				require.NoError(t, l.Unlock())
				v.Quiet()
				zktest.CheckChildren(t, v.Server, proving.LockPath)
			})
		})
	}
}

func TestAcceptance020ADeleteThatGetsNoAnswerIsRepeatedWithoutTheCaller(t *testing.T) {
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(2)
				l := v.Lock(ms[0])
				next := v.Line(ms[1])[0]
				in := v.Server.Intercept(fate(zktest.On(zktest.Delete, entries).Times(3)))
				require.NoError(t, l.Unlock())
				require.ErrorIs(t, l.Err(), zksync.ErrReleased)
				require.NoError(t, v.Granted(next).Unlock())
				require.Positive(t, in.Fired())
				v.Queued(proving.LockPath, 0)
			})
		})
	}
}

// The create is applied, its reply is lost, and for six seconds no server takes a connection.
func TestAcceptance120ALostReplyAndSixSecondsOfRefusalLeaveNoOrphan(t *testing.T) {
	const refusal = 6 * time.Second
	for _, timeout := range []time.Duration{3 * time.Second, 10 * time.Second} {
		for name, patience := range map[string]time.Duration{
			"gives up before": time.Second, "gives up at the end": refusal, "waits": time.Hour,
		} {
			t.Run(fmt.Sprintf("%v/%s", timeout, name), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) { outage(t, v, timeout, refusal, patience) })
			})
		}
	}
}

func outage(t *testing.T, v *proving.Env, timeout, refusal, patience time.Duration) {
	t.Helper()
	contender := v.Session(zksync.WithTimeout(time.Hour))
	m := zksync.NewMutex(v.Session(zksync.WithTimeout(timeout)), proving.LockPath)
	require.NoError(t, v.Lock(m).Unlock())
	v.Server.InterceptFunc(losesReplyOnce(v.Server, refusal))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	a := proving.Begin(ctx, m)
	<-a.Done
	if a.Err != nil {
		require.ErrorIs(t, a.Err, context.DeadlineExceeded)
		v.Took(start, patience, "giving up")
	} else {
		require.GreaterOrEqual(t, time.Since(start), refusal)
		v.Quiet()
		zktest.CheckChildren(t, v.Server, proving.LockPath, a.Lease.Node()[len(proving.LockPath)+1:])
		require.NoError(t, a.Lease.Unlock())
	}
	// Whatever the first one did, the next one gets the lock as soon as the session or the outage is over.
	l := v.Lock(zksync.NewMutex(contender, proving.LockPath))
	require.LessOrEqual(t, time.Since(start), max(timeout, refusal)+2*time.Second)
	v.Quiet()
	zktest.CheckChildren(t, v.Server, proving.LockPath, l.Node()[len(proving.LockPath)+1:])
	require.NoError(t, l.Unlock())
	time.Sleep(max(timeout, refusal))
	zktest.CheckChildren(t, v.Server, proving.LockPath)
	require.NoError(t, v.Lock(m).Unlock(), "the first one can lock again")
}

// losesReplyOnce loses the reply to the next create of an entry and refuses connections from then on,
// for a while.
func losesReplyOnce(srv *zktest.Server, refusal time.Duration) func(q *zktest.Request) zktest.Verdict {
	var struck atomic.Bool
	return func(q *zktest.Request) zktest.Verdict {
		if !slices.Contains(q.Ops, zktest.Create) || !struck.CompareAndSwap(false, true) {
			return zktest.Verdict{}
		}
		time.AfterFunc(refusal, srv.Refuse())
		return zktest.Verdict{Fate: zktest.LoseReply}
	}
}

func TestAcceptance121AListingThatFailsRightAfterTheOwnCreateLeavesNoNode(t *testing.T) {
	fails := map[string]func(r *zktest.Rule) *zktest.Rule{
		"no permission": func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeNoAuth) },
		"bad arguments": func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeBadArguments) },
		"internal":      func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeMarshalling) },
	}
	for name, fate := range fates {
		fails[name] = fate
	}
	for name, fail := range fails {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(2)
				v.Unlocks(ms[1].LockContext(t.Context())) // only a session's first entry has read who is ahead
				holder := v.Lock(ms[0])
				in := v.Server.Intercept(fail(zktest.On(zktest.GetChildren, proving.LockPath)))
				ctx, start := proving.Soon(t)
				a := proving.Begin(ctx, ms[1])
				err := v.Failed(a)
				v.Within(start, proving.Deadline+50*time.Millisecond, "LockContext")
				require.Positive(t, in.Fired())
				if time.Since(start) >= proving.Deadline {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				in.Remove()
				v.Queued(proving.LockPath, 1)
				require.NoError(t, holder.Unlock())
				require.NoError(t, v.Lock(ms[1]).Unlock())
			})
		})
	}
}

// NoAuth is an answer, not an outage: the call fails at once, and the entry goes with it.
func TestAcceptance121ALockThatMayNotBeListedIsAnErrorAndLeavesNoNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		v.Unlocks(ms[1].LockContext(t.Context())) // only a session's first entry has read who is ahead
		holder := v.Lock(ms[0])
		v.Server.Intercept(zktest.On(zktest.GetChildren, proving.LockPath).Error(zktest.CodeNoAuth))
		start := time.Now()
		_, err := ms[1].LockContext(context.Background())
		require.ErrorContains(t, err, "deny access")
		v.Took(start, 0, "LockContext")
		zktest.CheckChildren(t, v.Server, proving.LockPath, holder.Node()[len(proving.LockPath)+1:])
		require.ErrorContains(t, panicOf(t, ms[1].Lock), "deny access")
		zktest.CheckChildren(t, v.Server, proving.LockPath, holder.Node()[len(proving.LockPath)+1:])
		require.NoError(t, holder.Unlock())
	})
}
