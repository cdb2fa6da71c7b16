package recipes_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// blocksUntilUnlock has the second of two lock the path while the first holds it.
func blocksUntilUnlock(t *testing.T, v *env, first, second *zksync.Mutex, entries int) {
	t.Helper()
	held := v.lock(first)
	a := begin(context.Background(), second)
	v.settled(lockPath, entries)
	require.True(t, a.pending(), "granted although the first holds")
	start := time.Now()
	require.NoError(t, held.Unlock())
	l := v.granted(a)
	v.within(start, 500*time.Millisecond, "the grant")
	require.Positive(t, l.Token().Compare(held.Token()), "tokens must grow")
	require.NoError(t, l.Unlock())
	v.queued(lockPath, 0)
}

func TestAcceptance001TheSecondHandleOfOneSessionWaitsForTheFirst(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		blocksUntilUnlock(t, v, zksync.NewMutex(s, lockPath), zksync.NewMutex(s, lockPath), 2)
	})
}

func TestAcceptance002TheSecondSessionWaitsForTheFirst(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
		blocksUntilUnlock(t, v, ms[0], ms[1], 2)
	})
}

func TestAcceptance003TheSecondGoroutineOnOneHandleWaitsForTheFirst(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		blocksUntilUnlock(t, v, m, m, 1)
	})
}

func TestAcceptance003TheMirrorFormWaitsToo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		m.Lock()
		locked := make(chan struct{})
		go func() {
			m.Lock()
			close(locked)
		}()
		v.quiet()
		select {
		case <-locked:
			require.Fail(t, "locked twice")
		default:
		}
		m.Unlock()
		v.awaits(locked, "the second Lock")
		m.Unlock()
		v.queued(lockPath, 0)
	})
}

// increments has every mutex increment a plain int, and checks it and the tokens.
func increments(t *testing.T, v *env, rounds int, ms ...*zksync.Mutex) {
	t.Helper()
	var s section
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
				s.pass()
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
	s.check(t, rounds*len(ms))
	for i := 1; i < len(tokens); i++ {
		require.Positive(t, tokens[i].Compare(tokens[i-1]), "token %d, %v after %v", i, tokens[i], tokens[i-1])
	}
	v.queued(lockPath, 0)
}

// jittery opens n sessions with networks of different and, in virtual time, considerable latency.
func jittery(v *env, n int) []*zksync.Session {
	v.t.Helper()
	ss := make([]*zksync.Session, n)
	for i := range ss {
		ss[i] = v.session()
		if v.virtual {
			rnd := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			delay := func() time.Duration { return time.Duration(rnd.IntN(3000)) * time.Microsecond }
			v.srv.Delay(ss[i].ID(), delay(), delay())
		}
	}
	return ss
}

func TestAcceptance004FiveSessionsIncrementWithoutLoss(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var ms []*zksync.Mutex
		for _, s := range jittery(v, 5) {
			ms = append(ms, zksync.NewMutex(s, lockPath))
		}
		increments(t, v, 100, ms...)
	})
}

func TestAcceptance004FiveGoroutinesOnOneHandleIncrementWithoutLoss(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(jittery(v, 1)[0], lockPath)
		increments(t, v, 100, m, m, m, m, m)
	})
}

func TestAcceptance004FiveHandlesOfOneSessionIncrementWithoutLoss(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := jittery(v, 1)[0]
		var ms []*zksync.Mutex
		for range 5 {
			ms = append(ms, zksync.NewMutex(s, lockPath))
		}
		increments(t, v, 100, ms...)
	})
}

func TestAcceptance004TwoGoroutinesEachOnThreeSessionsIncrementWithoutLoss(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var ms []*zksync.Mutex
		for _, s := range jittery(v, 3) {
			m := zksync.NewMutex(s, lockPath)
			ms = append(ms, m, m)
		}
		increments(t, v, 50, ms...)
	})
}

func TestAcceptance004LoadOfTenSessionsAThousandTimesEach(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		increments(t, v, rounds(1000), v.mutexes(10)...)
	})
}
