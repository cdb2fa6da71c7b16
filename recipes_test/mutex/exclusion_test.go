package mutex_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// blocksUntilUnlock has the second of two lock the path while the first holds it.
func blocksUntilUnlock(t *testing.T, v *proving.Env, first, second *zksync.Mutex, entries int) {
	t.Helper()
	held := v.Lock(first)
	a := proving.Begin(context.Background(), second)
	v.Settled(proving.LockPath, entries)
	require.True(t, a.Pending(), "granted although the first holds")
	start := time.Now()
	require.NoError(t, held.Unlock())
	l := v.Granted(a)
	v.Within(start, 500*time.Millisecond, "the grant")
	require.Positive(t, l.Token().Compare(held.Token()), "tokens must grow")
	require.NoError(t, l.Unlock())
	v.Queued(proving.LockPath, 0)
}

func TestAcceptance001TheSecondHandleOfOneSessionWaitsForTheFirst(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		blocksUntilUnlock(t, v, zksync.NewMutex(s, proving.LockPath), zksync.NewMutex(s, proving.LockPath), 2)
	})
}

func TestAcceptance002TheSecondSessionWaitsForTheFirst(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		blocksUntilUnlock(t, v, ms[0], ms[1], 2)
	})
}

func TestAcceptance003TheSecondGoroutineOnOneHandleWaitsForTheFirst(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		blocksUntilUnlock(t, v, m, m, 1)
	})
}

func TestAcceptance003TheMirrorFormWaitsToo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		m.Lock()
		locked := make(chan struct{})
		go func() {
			m.Lock()
			close(locked)
		}()
		v.Quiet()
		select {
		case <-locked:
			require.Fail(t, "locked twice")
		default:
		}
		m.Unlock()
		v.Awaits(locked, "the second Lock")
		m.Unlock()
		v.Queued(proving.LockPath, 0)
	})
}

// increments has every mutex increment a plain int, and checks it and the tokens.
func increments(t *testing.T, v *proving.Env, rounds int, ms ...*zksync.Mutex) {
	t.Helper()
	var s proving.Section
	var tokens []zksync.Token // protected by the lock, like the section
	var wg sync.WaitGroup
	errs := make(chan error, len(ms))
	for _, m := range ms {
		wg.Go(func() {
			for range rounds {
				l, err := m.LockContext(context.Background())
				if err != nil {
					errs <- err
					return
				}
				s.Pass()
				tokens = append(tokens, l.Token())
				if err := l.Unlock(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	s.Check(t, rounds*len(ms))
	for i := 1; i < len(tokens); i++ {
		require.Positive(t, tokens[i].Compare(tokens[i-1]), "token %d, %v after %v", i, tokens[i], tokens[i-1])
	}
	v.Queued(proving.LockPath, 0)
}

// jittery opens n sessions with networks of different and, in virtual time, considerable latency.
func jittery(v *proving.Env, n int) []*zksync.Session {
	v.T.Helper()
	ss := make([]*zksync.Session, n)
	for i := range ss {
		ss[i] = v.Session()
		if v.Virtual {
			rnd := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			delay := func() time.Duration { return time.Duration(rnd.IntN(3000)) * time.Microsecond }
			v.Server.Delay(ss[i].ID(), delay(), delay())
		}
	}
	return ss
}

func TestAcceptance004FiveSessionsIncrementWithoutLoss(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var ms []*zksync.Mutex
		for _, s := range jittery(v, 5) {
			ms = append(ms, zksync.NewMutex(s, proving.LockPath))
		}
		increments(t, v, 100, ms...)
	})
}

func TestAcceptance004FiveGoroutinesOnOneHandleIncrementWithoutLoss(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(jittery(v, 1)[0], proving.LockPath)
		increments(t, v, 100, m, m, m, m, m)
	})
}

func TestAcceptance004FiveHandlesOfOneSessionIncrementWithoutLoss(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := jittery(v, 1)[0]
		var ms []*zksync.Mutex
		for range 5 {
			ms = append(ms, zksync.NewMutex(s, proving.LockPath))
		}
		increments(t, v, 100, ms...)
	})
}

func TestAcceptance004TwoGoroutinesEachOnThreeSessionsIncrementWithoutLoss(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var ms []*zksync.Mutex
		for _, s := range jittery(v, 3) {
			m := zksync.NewMutex(s, proving.LockPath)
			ms = append(ms, m, m)
		}
		increments(t, v, 50, ms...)
	})
}

func TestAcceptance004LoadOfTenSessionsAThousandTimesEach(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rounds := proving.Rounds(1000)
		if !v.Virtual && !proving.Full {
			rounds = 200 // a thousand take a tenth of the time of all tests on real servers
		}
		increments(t, v, rounds, v.Mutexes(10)...)
	})
}
