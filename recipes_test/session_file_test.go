package recipes_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The servers would end these sessions half a minute after they last heard of them.
const longSession = 30 * time.Second

// inherit copies a session file. The copy stands for the lock on the file, which ends with its process.
func inherit(t *testing.T, from, to string) {
	t.Helper()
	left, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, left, 0o600))
}

// died leaves what a process that holds the lock leaves behind when it dies: its session, and its session
// file as the first of a directory. Somebody waits for the lock.
func died(t *testing.T, v *env) (dir string, next *attempt) {
	t.Helper()
	dir = t.TempDir()
	s, crash := mortal(v, zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(longSession))
	v.lock(zksync.NewMutex(s, lockPath))
	next = v.line(v.mutexes(1)...)[0]
	crash()
	return dir, next
}

// freedBy checks that a process which starts with a session file frees the lock at once.
func freedBy(t *testing.T, v *env, file string, next *attempt) {
	t.Helper()
	start := time.Now()
	s := v.session(zksync.WithSessionFile(file))
	l := v.granted(next)
	v.within(start, time.Second, "the grant")
	require.NoError(t, l.Unlock())
	v.quiet()
	require.NoError(t, s.Close())
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left to end")
}

func TestAConnectThatFailsLeavesThePredecessorToTheNextOne(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dir, next := died(t, v)
		inherit(t, dir+"/first", dir+"/second")
		allow := v.srv.Refuse()
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := v.connect(ctx, zksync.WithSessionFile(dir+"/second"))
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		allow()
		freedBy(t, v, dir+"/second", next)
	})
}

func TestACloseThatDidNotReachTheServersLeavesItsSessionToTheSuccessor(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		file := t.TempDir() + "/session"
		s := v.session(zksync.WithSessionFile(file), zksync.WithTimeout(longSession))
		v.lock(zksync.NewMutex(s, lockPath))
		next := v.line(v.mutexes(1)...)[0]
		heal := v.srv.Refuse()
		v.srv.Disconnect(s.ID())
		require.NoError(t, s.Close())
		heal()
		freedBy(t, v, file, next)
	})
}

func TestACloseOfASessionThatTheServersEndedLeavesNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		file := t.TempDir() + "/session"
		s := v.session(zksync.WithSessionFile(file))
		changes := listen(s)
		v.expire(s)
		v.eventually(func() bool { return changes.counted(1, 1) }, "the next session")
		require.NoError(t, s.Close())
		<-changes.ended
		left, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// A process ends its predecessor's session right after it has one of its own. It may die in between, or find
// no server that would do it.
func TestThePredecessorIsRememberedUntilItsEndIsConfirmed(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dir, next := died(t, v)
		inherit(t, dir+"/first", dir+"/second")
		var strikes atomic.Int32
		allow := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Connect && q.Session != 0 {
				strikes.Add(1)
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		s, crash := mortal(v, zksync.WithSessionFile(dir+"/second"), zksync.WithTimeout(longSession))
		other := v.lock(zksync.NewMutex(s, "/locks/b"))
		pause(t, v, time.Second)
		require.Positive(t, strikes.Load())
		require.True(t, next.pending())
		require.True(t, other.Valid())
		crash()
		waits := begin(context.Background(), zksync.NewMutex(v.session(), "/locks/b"))
		allow()

		inherit(t, dir+"/second", dir+"/third")
		start := time.Now()
		third := v.session(zksync.WithSessionFile(dir + "/third"))
		require.NoError(t, v.granted(next).Unlock())
		require.NoError(t, v.granted(waits).Unlock())
		v.within(start, time.Second, "the grants of what both dead processes held")
		v.quiet()
		require.NoError(t, third.Close())
		left, err := os.ReadFile(dir + "/third")
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// The servers that can be reached may be of no use for that at first.
func TestThePredecessorsSessionIsEndedWhenAServerDoesSoAtLast(t *testing.T) {
	for name, verdict := range map[string]zktest.Verdict{
		"no answer": {Fate: zktest.LoseRequest},
		"a refusal": {Fate: zktest.Fail, Code: -118}, // the session has moved
	} {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				dir, next := died(t, v)
				inherit(t, dir+"/first", dir+"/second")
				allow := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op == zktest.CloseSession {
						return verdict
					}
					return zktest.Verdict{}
				})
				s := v.session(zksync.WithSessionFile(dir + "/second"))
				pause(t, v, 5*time.Second)
				require.True(t, next.pending())
				allow()
				start := time.Now()
				l := v.granted(next)
				v.within(start, 2*time.Second, "the grant")
				require.NoError(t, l.Unlock())
				require.NoError(t, s.Close())
			})
		})
	}
}

// A session that this process gave up itself, and could not end yet, is no better than a predecessor's.
func TestASessionThatWasLostIsRememberedUntilItsEndIsConfirmed(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dir := t.TempDir()
		s, crash := mortal(v, zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(longSession), zksync.WithLeaseFraction(0.2))
		l := v.lock(zksync.NewMutex(s, lockPath))
		next := v.line(v.mutexes(1)...)[0]
		first := s.ID()
		var strikes atomic.Int32
		allow := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Connect && q.Session == first {
				strikes.Add(1)
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		heal := v.cutOff(s)
		v.awaits(l.Done(), "the loss")
		heal()
		v.eventually(func() bool { return s.ID() != first && s.State() == zksync.Connected }, "the next session")
		v.eventually(func() bool { return strikes.Load() > 3 }, "attempts to end the first session")
		require.True(t, next.pending())
		crash()
		allow()
		inherit(t, dir+"/first", dir+"/second")
		freedBy(t, v, dir+"/second", next)
	})
}
