package session_test

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
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
func died(t *testing.T, v *proving.Env) (dir string, next *proving.Attempt) {
	t.Helper()
	dir = t.TempDir()
	s, crash := mortal(v, zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(longSession))
	v.Lock(zksync.NewMutex(s, proving.LockPath))
	next = v.Line(v.Mutexes(1)...)[0]
	crash()
	return dir, next
}

// freedBy checks that a process which starts with a session file frees the lock at once.
func freedBy(t *testing.T, v *proving.Env, file string, next *proving.Attempt) {
	t.Helper()
	start := time.Now()
	s := v.Session(zksync.WithSessionFile(file))
	l := v.Granted(next)
	v.Within(start, time.Second, "the grant")
	require.NoError(t, l.Unlock())
	v.Quiet()
	require.NoError(t, s.Close())
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left to end")
}

func TestAConnectThatFailsLeavesThePredecessorToTheNextOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dir, next := died(t, v)
		inherit(t, dir+"/first", dir+"/second")
		allow := v.Server.Refuse()
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := v.Connect(ctx, zksync.WithSessionFile(dir+"/second"))
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		allow()
		freedBy(t, v, dir+"/second", next)
	})
}

func TestACloseThatDidNotReachTheServersLeavesItsSessionToTheSuccessor(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		file := t.TempDir() + "/session"
		s := v.Session(zksync.WithSessionFile(file), zksync.WithTimeout(longSession))
		v.Lock(zksync.NewMutex(s, proving.LockPath))
		next := v.Line(v.Mutexes(1)...)[0]
		heal := v.Server.Refuse()
		v.Server.Disconnect(s.ID())
		require.NoError(t, s.Close())
		heal()
		freedBy(t, v, file, next)
	})
}

func TestACloseOfASessionThatTheServersEndedLeavesNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		file := t.TempDir() + "/session"
		s := v.Session(zksync.WithSessionFile(file))
		changes := listen(s)
		v.Expire(s)
		v.Eventually(func() bool { return changes.counted(1, 1) }, "the next session")
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
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dir, next := died(t, v)
		inherit(t, dir+"/first", dir+"/second")
		var strikes atomic.Int32
		allow := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Connect && q.Session != 0 {
				strikes.Add(1)
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		s, crash := mortal(v, zksync.WithSessionFile(dir+"/second"), zksync.WithTimeout(longSession))
		other := v.Lock(zksync.NewMutex(s, "/locks/b"))
		proving.Pause(t, v, time.Second)
		require.Positive(t, strikes.Load())
		require.True(t, next.Pending())
		require.True(t, other.Valid())
		crash()
		waits := proving.Begin(context.Background(), zksync.NewMutex(v.Session(), "/locks/b"))
		allow()

		inherit(t, dir+"/second", dir+"/third")
		start := time.Now()
		third := v.Session(zksync.WithSessionFile(dir + "/third"))
		require.NoError(t, v.Granted(next).Unlock())
		require.NoError(t, v.Granted(waits).Unlock())
		v.Within(start, time.Second, "the grants of what both dead processes held")
		v.Quiet()
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
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				dir, next := died(t, v)
				inherit(t, dir+"/first", dir+"/second")
				allow := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op == zktest.CloseSession {
						return verdict
					}
					return zktest.Verdict{}
				})
				s := v.Session(zksync.WithSessionFile(dir + "/second"))
				proving.Pause(t, v, 5*time.Second)
				require.True(t, next.Pending())
				allow()
				start := time.Now()
				l := v.Granted(next)
				v.Within(start, 2*time.Second, "the grant")
				require.NoError(t, l.Unlock())
				require.NoError(t, s.Close())
			})
		})
	}
}

// A session that this process gave up itself, and could not end yet, is no better than a predecessor's.
func TestASessionThatWasLostIsRememberedUntilItsEndIsConfirmed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dir := t.TempDir()
		s, crash := mortal(v, zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(longSession), zksync.WithLeaseFraction(0.2))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		next := v.Line(v.Mutexes(1)...)[0]
		first := s.ID()
		var strikes atomic.Int32
		allow := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Connect && q.Session == first {
				strikes.Add(1)
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		heal := v.CutOff(s)
		v.Awaits(l.Done(), "the loss")
		heal()
		v.Eventually(func() bool { return s.ID() != first && s.State() == zksync.Connected }, "the next session")
		v.Eventually(func() bool { return strikes.Load() > 3 }, "attempts to end the first session")
		require.True(t, next.Pending())
		crash()
		allow()
		inherit(t, dir+"/first", dir+"/second")
		freedBy(t, v, dir+"/second", next)
	})
}

// mortal opens a session of a process whose connections end with a crash. Nobody else's do.
func mortal(v *proving.Env, opts ...zksync.SessionOption) (s *zksync.Session, crash func()) {
	v.T.Helper()
	if !v.Virtual {
		s = v.Session(opts...)
		return s, func() { v.CutOff(s) }
	}
	var dead atomic.Bool
	s = v.Session(append(opts, zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dead.Load() {
			return nil, net.ErrClosed
		}
		return v.Server.DialContext(ctx, network, address)
	}))...)
	return s, func() {
		dead.Store(true)
		v.Disconnect(s)
	}
}

func TestASuccessorWithTheSameSessionFileFreesWhatItsPredecessorHeld(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		dir := t.TempDir()
		s, crash := mortal(v, zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(v.Span(8*time.Second, 20*time.Second)))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		next := v.Line(v.Mutexes(1)...)[0]

		// The copy stands for the lock on the file, which ends with its process.
		crash()
		left, err := os.ReadFile(dir + "/first")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir+"/second", left, 0o600))
		start := time.Now()
		successor := v.Session(zksync.WithSessionFile(dir + "/second"))
		require.NotEqual(t, s.ID(), successor.ID())
		after := v.Granted(next)
		v.AtOnce(start, "the grant, without which it would take the predecessor's timeout")
		require.NoError(t, after.Unlock())
		v.Awaits(l.Done(), "the predecessor to find out by its clock, had it not died")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
	})
}

func TestASessionFileBelongsToOneSessionAtATime(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		file := t.TempDir() + "/session"
		s := v.Session(zksync.WithSessionFile(file))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		_, err := zksync.Connect(context.Background(), "zk:2181", zksync.WithSessionFile(file))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		require.NoError(t, s.Close())
		left, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, left, "nothing is left to clean up")
		require.NoError(t, v.Lock(zksync.NewMutex(v.Session(zksync.WithSessionFile(file)), proving.LockPath)).Unlock())
	})
}
