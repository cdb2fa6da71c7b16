package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// reaped is one use of a recipe on a path whose directories the servers may remove while they are
// empty.
type reaped struct {
	name string
	dirs []string // the containers that a use leaves, the parents last
	use  func(t *testing.T, v *proving.Env, s *zksync.Session)
}

// free checks how many permits are free.
func free(v *proving.Env, want int64, w *zksemaphore.Weighted) {
	v.T.Helper()
	proving.Agrees(v, want, func() (int64, error) { return w.Available(background) }, "free permits")
}

var background = context.Background()

var reapedLocks = []reaped{
	{"read and write", []string{proving.LockPath, "/locks"}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		rw := zkrwmutex.New(s, proving.LockPath)
		v.Unlocks(rw.RLockContext(background))
		v.Unlocks(rw.LockContext(background))
		v.Unlocks(rw.TryRLockContext(background))
		v.Unlocks(rw.TryLockContext(background))
	}},
	{"read and write, the mirror form", []string{proving.LockPath, "/locks"}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		rw := zkrwmutex.New(s, proving.LockPath)
		rw.RLock()
		rw.RUnlock()
		require.True(t, rw.TryLock())
		rw.Unlock()
		list, err := rw.Contenders(background)
		require.NoError(t, err)
		require.Empty(t, list)
	}},
	{"downgrade", []string{proving.LockPath, "/locks"}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		rw := zkrwmutex.New(s, proving.LockPath)
		for range 2 {
			l, err := rw.LockContext(background)
			require.NoError(t, err)
			v.Unlocks(rw.Downgrade(background, l))
		}
	}},
	{"reentrant", []string{proving.LockPath, "/locks"}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		m.Lock()
		m.Lock()
		m.Unlock()
		m.Unlock()
		rw := reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath))
		rw.RLock()
		rw.RUnlock()
		rw.Lock()
		rw.RLock()
		rw.Unlock()
		rw.RUnlock()
	}},
	{"several as one", []string{"/forks/a", "/forks/b", "/forks"}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		both := zksync.MultiLock(zksync.NewMutex(s, "/forks/b"), zksync.NewMutex(s, "/forks/a"))
		for range 2 {
			ls, err := both.LockContext(background)
			require.NoError(t, err)
			require.NoError(t, ls.Unlock())
		}
		ls, err := both.TryLockContext(background)
		require.NoError(t, err)
		require.NoError(t, ls.Unlock())
	}},
}

var reapedOthers = []reaped{
	{"permits", []string{proving.SemQueue}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		w := zksemaphore.NewWeighted(s, proving.SemPath, 3)
		require.NoError(t, w.Acquire(background, 3))
		w.Release(1)
		w.Release(2)
		v.Unlocks(w.TryAcquireLease(background, 2))
		free(v, 3, w)
	}},
	{"permits, resized", []string{proving.SemQueue}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		w := zksemaphore.NewWeighted(s, proving.SemPath, 3)
		free(v, 3, w)
		big := proving.Call(background, func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 4) })
		require.NoError(t, w.Resize(background, 4))
		v.Unlocks(v.Granted(big), nil)
		list, err := w.Contenders(background)
		require.NoError(t, err)
		require.Empty(t, list)
	}},
	{"campaigns", []string{proving.ElectionPath}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		e := zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: "c0"})
		_, err := e.Leader(background)
		require.ErrorIs(t, err, zksync.ErrNoLeader)
		v.Unlocks(e.Campaign(background))
		list, err := e.Candidates(background)
		require.NoError(t, err)
		require.Empty(t, list)
		v.Unlocks(e.TryCampaign(background))
		require.NoError(t, e.Run(background, func(context.Context, *zksync.Lease) error { return nil }))
	}},
	{"an observer", []string{proving.ElectionPath}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		e := zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: "c0"})
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		observed(ctx, t, v, e)
	}},
	{"once", []string{proving.OncePath + "/lock", proving.OncePath, path.Dir(proving.OncePath)}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		o := zkonce.New(s, proving.OncePath)
		for i := range 2 {
			done, err := o.IsDone(background)
			require.NoError(t, err)
			require.False(t, done)
			require.NoError(t, o.Reset(background))
			value, err := o.DoContext(background, func(context.Context) ([]byte, error) { return fmt.Append(nil, i), nil })
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), string(value))
			o.Do(func() { t.Error("it has been done") })
			require.NoError(t, o.Reset(background))
		}
	}},
	{"a gate", []string{"/gates/db", "/gates"}, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		g := zklatch.NewGate(s, "/gates/db")
		for range 2 {
			require.NoError(t, g.Open(background))
			require.NoError(t, g.Wait(background))
			require.NoError(t, g.Close(background))
			closed, err := g.IsClosed(background)
			require.NoError(t, err)
			require.True(t, closed)
			w := proving.Waits(background, g.Wait)
			require.NoError(t, g.Open(background))
			v.Passes(w)
			closed, err = g.IsClosed(background)
			require.NoError(t, err)
			require.False(t, closed)
		}
	}},
}

// observed has somebody lead while e is observed: nobody, e, nobody.
func observed(ctx context.Context, t *testing.T, v *proving.Env, e *zkelection.Election) {
	var l *zksync.Lease
	ended := false
	for who, err := range e.Observe(ctx) {
		switch {
		case l == nil:
			require.ErrorIs(t, err, zksync.ErrNoLeader)
			l, err = e.Campaign(ctx)
			require.NoError(t, err)
		case !ended && errors.Is(err, zksync.ErrNoLeader): // seen before the campaign
		case !ended:
			require.NoError(t, err)
			require.Equal(t, l.Node(), who.Node)
			ended = true
			require.NoError(t, l.Unlock())
		default:
			require.ErrorIs(t, err, zksync.ErrNoLeader)
			return
		}
	}
	require.Fail(t, "the observer ended by itself")
}

// The servers remove empty containers whenever they like: here just before the n-th request, once or twice.
func TestAcceptance131TheDirectoriesOfEveryRecipeMayBeRemovedBetweenAnyTwoRequests(t *testing.T) {
	for _, r := range append(reapedLocks, reapedOthers...) {
		t.Run(r.name, func(t *testing.T) {
			for nth := 1; ; nth++ {
				asked := 0
				for i, there := range []bool{true, false, true, false} {
					if twice := i < 2; !testing.Short() || i == nth%4 {
						asked = max(asked, r.play(t, nth, there, twice))
					}
				}
				if asked < nth || t.Failed() {
					break
				}
			}
		})
	}
}

// play returns how many requests it took.
func (r reaped) play(t *testing.T, nth int, there, twice bool) (asked int) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for i := len(r.dirs) - 1; i >= 0 && there; i-- {
			if parent := path.Dir(r.dirs[i]); !v.Exists(parent) { // of a semaphore's queue
				break
			}
			v.Server.Create(r.dirs[i], nil, zk.FlagContainer, 0)
		}
		s := v.Session()
		count := v.Server.Intercept(zktest.On(zktest.Any, "**"))
		v.Server.InterceptFunc(func(*zktest.Request) zktest.Verdict {
			if n := count.Matched(); n == nth || twice && n == nth+2 {
				for _, dir := range r.dirs {
					if v.Exists(dir) && len(v.Server.Children(dir)) == 0 {
						v.Server.Delete(dir)
					}
				}
			}
			return zktest.Verdict{}
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.use(t, v, s)
		}()
		v.Awaits(done, "the last of the calls")
		asked = count.Matched()
		v.Later()
		for _, s := range v.Server.Sessions() {
			require.Empty(t, s.Ephemerals, "before request %d", nth)
		}
	})
	return asked
}
