package session_test

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// syncForms are the calls without context and error that may wait for others or for servers. A nil
// before means that others hold the lock.
var syncForms = map[string]struct {
	before func(other *zksync.Session)      // makes the call wait; nil: a partition does
	call   func(s *zksync.Session) []func() // what comes before in the same goroutine, and the call
}{
	"Mutex.Lock": {held, func(s *zksync.Session) []func() {
		return []func(){zksync.NewMutex(s, proving.LockPath).Lock}
	}},
	"MultiLock.Lock": {held, func(s *zksync.Session) []func() {
		return []func(){zksync.MultiLock(zksync.NewMutex(s, "/locks/0"), zksync.NewMutex(s, proving.LockPath)).Lock}
	}},
	"RWMutex.Lock": {held, func(s *zksync.Session) []func() {
		return []func(){zkrwmutex.New(s, proving.LockPath).Lock}
	}},
	"RWMutex.RLock": {held, func(s *zksync.Session) []func() {
		return []func(){zkrwmutex.New(s, proving.LockPath).RLock}
	}},
	"RWMutex.RLocker": {held, func(s *zksync.Session) []func() {
		return []func(){zkrwmutex.New(s, proving.LockPath).RLocker().Lock}
	}},
	"reentrant.Mutex.Lock": {held, func(s *zksync.Session) []func() {
		return []func(){reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath)).Lock}
	}},
	"reentrant.RWMutex.Lock": {held, func(s *zksync.Session) []func() {
		return []func(){reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)).Lock}
	}},
	"reentrant.RWMutex.RLock": {held, func(s *zksync.Session) []func() {
		return []func(){reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)).RLock}
	}},
	"Cond.Wait": {nothing, func(s *zksync.Session) []func() {
		m := zksync.NewMutex(s, proving.LockPath)
		return []func(){m.Lock, zkcond.New(m, proving.CondPath).Wait}
	}},
	"Cond.Wait of a reentrant lock": {nothing, func(s *zksync.Session) []func() {
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		return []func(){m.Lock, zkcond.New(m, proving.CondPath).Wait}
	}},
	"Cond.Broadcast": {nil, func(s *zksync.Session) []func() {
		m := zksync.NewMutex(s, proving.LockPath)
		return []func(){m.Lock, zkcond.New(m, proving.CondPath).Broadcast}
	}},
	"WaitGroup.Wait": {func(other *zksync.Session) { zkwaitgroup.New(other, proving.GroupPath).Add(1) }, func(s *zksync.Session) []func() {
		return []func(){zkwaitgroup.New(s, proving.GroupPath).Wait}
	}},
	"WaitGroup.Add": {nil, func(s *zksync.Session) []func() {
		return []func(){func() { zkwaitgroup.New(s, proving.GroupPath).Add(1) }}
	}},
	"WaitGroup.Done": {nil, func(s *zksync.Session) []func() {
		g := zkwaitgroup.New(s, proving.GroupPath)
		return []func(){func() { g.Add(1) }, g.Done}
	}},
	"Once.Do": {running, func(s *zksync.Session) []func() {
		return []func(){func() { zkonce.New(s, "/once").Do(func() {}) }}
	}},
	"OnceFunc": {running, func(s *zksync.Session) []func() {
		return []func(){zkonce.OnceFunc(s, "/once", func() {})}
	}},
	"OnceValue": {running, func(s *zksync.Session) []func() {
		f := zkonce.OnceValue(s, "/once", func() int { return 1 })
		return []func(){func() { f() }}
	}},
	"OnceValues": {running, func(s *zksync.Session) []func() {
		f := zkonce.OnceValues(s, "/once", func() (int, error) { return 1, nil })
		return []func(){func() { _, _ = f() }}
	}},
}

func nothing(*zksync.Session) {}

func held(other *zksync.Session) { zksync.NewMutex(other, proving.LockPath).Lock() }

// running is a Once whose function runs until its session is closed.
func running(other *zksync.Session) { zksync.NewMutex(other, "/once/lock").Lock() }

func TestACallOfTheFormWithoutErrorsThatWaitsWhileItsSessionIsClosedNeitherPanicsNorReturns(t *testing.T) {
	for name, c := range syncForms {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				other, s := v.Session(), v.Session()
				if c.before != nil {
					c.before(other)
				}
				synctest.Wait()
				goroutines := v.Goroutines()
				parked, ended := make(chan error, 1), make(chan any, 1)
				(*session.Session)(s).OnPark(func(err error) {
					parked <- err
					runtime.Goexit()
				})
				steps := c.call(s)
				ready, begin := make(chan struct{}), make(chan struct{})
				go func() {
					var panicked any = "it returned"
					defer func() {
						if len(parked) == 0 {
							ended <- panicked
						}
					}()
					defer func() { panicked = cmp.Or(recover(), panicked) }()
					for _, f := range steps[:len(steps)-1] {
						f()
					}
					close(ready)
					<-begin
					steps[len(steps)-1]()
				}()
				<-ready
				heal := func() {}
				if c.before == nil {
					heal = v.Partition(s)
				}
				close(begin)
				time.Sleep(time.Second)
				require.Empty(t, ended, "it waits")
				heal()
				require.NoError(t, s.Close())
				synctest.Wait()
				require.Empty(t, ended)
				require.ErrorIs(t, <-parked, zksync.ErrClosed)
				require.Len(t, v.Server.Sessions(), 1, "the other one")
				require.Less(t, v.Goroutines(), goroutines)

				err, _ := recovered(steps[len(steps)-1]).(error)
				require.ErrorIs(t, err, zksync.ErrClosed, "a call that begins after Close")
			})
		})
	}
}

func recovered(f func()) (x any) {
	defer func() { x = recover() }()
	f()
	return "it returned"
}

// Outside of tests nothing ends such a goroutine, and a bubble reports it when it ends.
func TestAParkedLockWaitsUntilTheProcessEnds(t *testing.T) {
	parked := func() int {
		stacks := make([]byte, 4<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "session.(*Session).park(")
	}
	before := parked()
	text := func() (text string) {
		defer func() { text = fmt.Sprint(recover()) }()
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			m := zksync.NewMutex(srv.Session(t), proving.LockPath)
			s := srv.Session(t)
			m.Lock()
			go zksync.NewMutex(s, proving.LockPath).Lock()
			synctest.Wait()
			require.NoError(t, s.Close())
			time.Sleep(time.Hour)
			m.Unlock()
		})
		return ""
	}()
	require.Contains(t, text, "blocked goroutines remain")
	require.Equal(t, before+1, parked())
}

// A Try that Close meets has not acquired anything, and sync's reports false then.
func TestATryThatMeetsCloseReportsFalse(t *testing.T) {
	for name, try := range map[string]func(s *zksync.Session) bool{
		"Mutex":            func(s *zksync.Session) bool { return zksync.NewMutex(s, proving.LockPath).TryLock() },
		"MultiLock":        func(s *zksync.Session) bool { return zksync.MultiLock(zksync.NewMutex(s, proving.LockPath)).TryLock() },
		"RWMutex":          func(s *zksync.Session) bool { return zkrwmutex.New(s, proving.LockPath).TryLock() },
		"RWMutex, reading": func(s *zksync.Session) bool { return zkrwmutex.New(s, proving.LockPath).TryRLock() },
		"Weighted":         func(s *zksync.Session) bool { return zksemaphore.NewWeighted(s, proving.LockPath, 2).TryAcquire(1) },
		"reentrant.Mutex": func(s *zksync.Session) bool {
			return reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath)).TryLock()
		},
		"reentrant.RWMutex": func(s *zksync.Session) bool {
			return reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)).TryRLock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				heal := v.Partition(s)
				acquired, panicked := make(chan bool, 1), make(chan any, 1)
				go func() {
					defer func() { panicked <- recover() }()
					acquired <- try(s)
				}()
				time.Sleep(time.Second)
				require.Empty(t, panicked)
				closed := make(chan error)
				go func() { closed <- s.Close() }()
				require.Nil(t, <-panicked)
				require.False(t, <-acquired)
				heal()
				require.NoError(t, <-closed)
			})
		})
	}
}

// A MultiLock may have mutexes of several sessions.
func TestAMultiLockIsParkedWhicheverOfItsSessionsIsClosed(t *testing.T) {
	for _, which := range []int{0, 1} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ss := []*zksync.Session{v.Session(), v.Session()}
			holder := v.Lock(zksync.NewMutex(v.Session(), "/locks/b"))
			m := zksync.MultiLock(zksync.NewMutex(ss[0], "/locks/a"), zksync.NewMutex(ss[1], "/locks/b"))
			parked := make(chan error, 2)
			for _, s := range ss {
				(*session.Session)(s).OnPark(func(err error) {
					parked <- err
					runtime.Goexit()
				})
			}
			go m.Lock()
			synctest.Wait()
			require.NoError(t, ss[which].Close())
			require.NoError(t, holder.Unlock())
			require.ErrorIs(t, <-parked, zksync.ErrClosed)
			require.Empty(t, v.Children("/locks/a"))
			require.Empty(t, v.Children("/locks/b"))
			err, _ := recovered(m.Lock).(error)
			require.ErrorIs(t, err, zksync.ErrClosed, "a call that begins after Close")
		})
	}
}
