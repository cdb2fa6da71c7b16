package mutex_test

import (
	"context"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// strangers are children of a lock's directory that nobody made who contends for it.
var strangers = []string{"README", "_c_", "lock-x", "lock-", "_c_-lock-", "-", "lock-12", "0000000000x"}

func TestAcceptance132ForeignChildrenNeitherBlockNorCrashAnybody(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for _, name := range strangers {
			v.Put(proving.LockPath+"/"+name, "not ours")
		}
		n := len(strangers)
		ms := v.Mutexes(3)
		l := v.Lock(ms[0])
		require.False(t, ms[1].TryLock())
		v.Flush()
		list, err := ms[1].Contenders(context.Background())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, zksync.Verify(context.Background(), v.Session(), proving.LockPath, l.Token()))
		a := proving.Begin(context.Background(), ms[1])
		v.Settled(proving.LockPath, n+2)
		b := proving.Begin(context.Background(), ms[2])
		v.Settled(proving.LockPath, n+3)
		v.Remove(proving.LockPath + "/README")
		v.Put(proving.LockPath+"/README.new", "not ours either")
		v.Quiet()
		require.True(t, a.Pending())
		require.NoError(t, l.Unlock())
		next := v.Granted(a)
		v.Quiet()
		require.True(t, b.Pending())
		require.NoError(t, next.Unlock())
		require.NoError(t, v.Granted(b).Unlock())
		v.Left(proving.LockPath, n, "unlocked")
		require.True(t, ms[0].TryLock())
		ms[0].Unlock()
		v.Left(proving.LockPath, n, "the strangers were not touched")
		for _, name := range strangers[1:] {
			require.Equal(t, "not ours", v.Data(proving.LockPath+"/"+name))
		}
	})
}

func TestAcceptance132ForeignChildrenLetAnIdleHolderLinger(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath+"/README", "not ours")
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath, zksync.WithLinger(30*time.Second))
		require.NoError(t, v.Lock(m).Unlock())
		v.Quiet()
		require.Len(t, v.Children(proving.LockPath), 2)
		require.NoError(t, v.Lock(m).Unlock())
	})
}

// reapedCalls is every call that relies on the lock's directory.
var reapedCalls = map[string]func(t *testing.T, v *proving.Env, s *zksync.Session, m *zksync.Mutex){
	"lock": func(t *testing.T, v *proving.Env, _ *zksync.Session, m *zksync.Mutex) {
		require.NoError(t, v.Lock(m).Unlock())
	},
	"lock with a deadline": func(t *testing.T, v *proving.Env, _ *zksync.Session, m *zksync.Mutex) {
		ctx, _ := proving.Soon(t)
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
	},
	"try": func(t *testing.T, v *proving.Env, _ *zksync.Session, m *zksync.Mutex) {
		l, err := m.TryLockContext(context.Background())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
	},
	"mirror": func(t *testing.T, v *proving.Env, _ *zksync.Session, m *zksync.Mutex) {
		m.Lock()
		m.Unlock()
		require.True(t, m.TryLock())
		m.Unlock()
	},
	"contenders": func(t *testing.T, v *proving.Env, _ *zksync.Session, m *zksync.Mutex) {
		list, err := m.Contenders(context.Background())
		require.NoError(t, err)
		require.Empty(t, list)
	},
	"verify": func(t *testing.T, v *proving.Env, s *zksync.Session, _ *zksync.Mutex) {
		err := zksync.Verify(context.Background(), s, proving.LockPath, zksync.Token{Zxid: 1})
		require.ErrorIs(t, err, zksync.ErrStale)
	},
}

// Empty containers are removed by the servers, whenever they like: here just before the n-th request.
func TestAcceptance131TheDirectoryMayBeRemovedBetweenAnyTwoRequests(t *testing.T) {
	for name, call := range reapedCalls {
		t.Run(name, func(t *testing.T) {
			for nth := 1; nth <= 8; nth++ {
				for _, there := range []bool{true, false} {
					t.Run(strconv.Itoa(nth)+" "+strconv.FormatBool(there), func(t *testing.T) {
						proving.InProcess(t, func(t *testing.T, v *proving.Env) {
							if there {
								v.Put(proving.LockPath, "")
							}
							s := v.Session()
							reapBefore(v.Server, nth)
							call(t, v, s, zksync.NewMutex(s, proving.LockPath))
							require.Empty(t, v.Children(proving.LockPath))
						})
					})
				}
			}
		})
	}
}

// reapBefore removes the lock's directory and its parent before the n-th request, if they are empty.
func reapBefore(srv *zktest.Server, nth int) {
	count := srv.Intercept(zktest.On(zktest.Any, "**"))
	srv.InterceptFunc(func(*zktest.Request) zktest.Verdict {
		if count.Matched() != nth {
			return zktest.Verdict{}
		}
		for p := proving.LockPath; p != "/"; p = path.Dir(p) {
			if _, there := srv.Node(p); there && len(srv.Children(p)) == 0 {
				srv.Delete(p)
			}
		}
		return zktest.Verdict{}
	})
}

func TestAcceptance131ALockThatWasIdleForLongIsMadeAnew(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		var last zksync.Token
		for i := range 4 {
			l := v.Lock(ms[i%2])
			require.Positive(t, l.Token().Compare(last), "although the sequence numbers began anew")
			last = l.Token()
			require.NoError(t, l.Unlock())
			time.Sleep(10 * time.Minute)
			zktest.CheckNoNode(t, v.Server, "/locks")
		}
	})
}
