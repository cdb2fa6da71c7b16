package cond_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// The waiter is on the servers' list before anybody else can hold the lock: whatever happens under it
// afterwards finds him.
func TestAcceptance041ASignalSentRightAfterTheReleaseIsNeverLost(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rounds := proving.Rounds(10000)
		if !v.Virtual {
			rounds = 200
		}
		a, b := newSide(v), newSide(v)
		turn := 0 // under the lock
		var all sync.WaitGroup
		for i, w := range []*side{a, b} {
			all.Go(func() {
				for range rounds / 2 {
					w.m.Lock()
					for turn%2 != i {
						w.c.Wait()
					}
					turn++
					w.c.Signal()
					w.m.Unlock()
				}
			})
		}
		all.Wait()
		require.Equal(t, rounds, turn)
		v.Queued(proving.CondPath, 0)
	})
}

func TestAcceptance042SignalWakesTheOldestAndBroadcastAllInOrder(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ws := sides(v, 5)
		var order []int // under the lock
		var done []<-chan struct{}
		for i, w := range ws[:4] {
			done = append(done, waits(v, w, func() { order = append(order, i) }))
		}
		ws[4].signals()
		v.Awaits(done[0], "the oldest")
		v.Settled(proving.CondPath, 3)
		start := time.Now()
		ws[4].broadcasts()
		for _, d := range done[1:] {
			v.Awaits(d, "the others")
		}
		v.AtOnce(start, "each hears of the one before")
		require.Equal(t, []int{0, 1, 2, 3}, order)
		v.Queued(proving.CondPath, 0)
		ws[4].signals() // nobody waits: nothing is kept for later
		ws[4].broadcasts()
		late := waits(v, ws[0], nothing)
		v.Quiet()
		select {
		case <-late:
			require.Fail(t, "woken by a signal that was sent before it waited")
		default:
		}
		ws[4].signals()
		v.Awaits(late, "the last one")
	})
}

// Two signals in a row are for two waiters, also before the first one has got the lock.
func TestTwoSignalsUnderOneHoldWakeTwo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ws := sides(v, 4)
		a, b, c := waits(v, ws[0], nothing), waits(v, ws[1], nothing), waits(v, ws[2], nothing)
		ws[3].m.Lock()
		ws[3].c.Signal()
		ws[3].c.Signal()
		ws[3].m.Unlock()
		v.Awaits(a, "the first")
		v.Awaits(b, "the second")
		v.Settled(proving.CondPath, 1)
		ws[3].signals()
		v.Awaits(c, "the third")
	})
}

func TestAcceptance043ConditionsOfOneLockAreIndependent(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w, other := newSide(v), newSide(v)
		full := zkcond.New(other.m, "/conds/b")
		a := waits(v, w, nothing)
		other.m.Lock()
		full.Broadcast()
		full.Signal()
		other.m.Unlock()
		v.Quiet()
		select {
		case <-a:
			require.Fail(t, "woken by the other condition")
		default:
		}
		other.signals()
		v.Awaits(a, "Wait")
	})
}

// Whoever was signalled ends in some way before it holds the lock again: another one who waited then is
// woken instead.
func TestAcceptance044ASignalledWaiterThatDoesNotComePassesTheSignalOn(t *testing.T) {
	ends := map[string]func(v *proving.Env, w *side, cancel func()){
		"cancelled": func(_ *proving.Env, _ *side, cancel func()) { cancel() },
		"expired":   func(v *proving.Env, w *side, _ func()) { v.Expire(w.s) },
		"closed":    func(_ *proving.Env, w *side, _ func()) { _ = w.s.Close() },
		"deleted": func(v *proving.Env, _ *side, _ func()) {
			oldest := v.Children(proving.CondPath)
			slices.SortFunc(oldest, func(a, b string) int {
				return strings.Compare(a[strings.Index(a, "-wait-"):], b[strings.Index(b, "-wait-"):])
			})
			v.Remove(proving.CondPath + "/" + oldest[0])
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				first, second, other := newSide(v), newSide(v), newSide(v)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				a := waitsContext(v, ctx, first)
				b := waits(v, second, nothing)
				held := v.Lock(other.m)
				require.NoError(t, other.c.SignalContext(context.Background(), held))
				v.Settled(proving.LockPath, 2) // the first one queues for the lock
				end(v, first, cancel)
				if name == "cancelled" || name == "closed" {
					v.Awaits(a.Done, "the first one")
					require.Nil(t, a.Lease)
				}
				require.NoError(t, held.Unlock())
				if name == "expired" || name == "deleted" { // as if it had been woken: it may have missed a signal
					require.NoError(t, v.Granted(a).Unlock())
				}
				v.Awaits(b, "the second one, who waited as well")
				v.Queued(proving.CondPath, 0)
				v.Queued(proving.LockPath, 0)
			})
		})
	}
}

// A signal goes to nobody who began to wait after it was sent.
func TestASignalThatIsPassedOnIsNotForWhoCameLater(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		first, other, later := newSide(v), newSide(v), newSide(v)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a := waitsContext(v, ctx, first)
		held := v.Lock(other.m)
		require.NoError(t, other.c.SignalContext(context.Background(), held))
		b := proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { // begins to wait ...
			l, err := later.m.LockContext(ctx)
			if err != nil {
				return nil, err
			}
			return later.c.WaitContext(ctx, l)
		})
		v.Settled(proving.LockPath, 3)
		cancel() // ... and is next for the lock now
		v.Awaits(a.Done, "the first one")
		require.NoError(t, held.Unlock())
		v.Settled(proving.LockPath, 0)
		require.True(t, b.Pending())
		other.signals()
		require.NoError(t, v.Granted(b).Unlock())
	})
}

func TestAcceptance046BroadcastWithSeveralWaitersOfOneProcessDoesNotDeadlock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w, other := newSide(v), newSide(v)
		woken := 0 // under the lock
		var done []<-chan struct{}
		for range 5 {
			done = append(done, waits(v, w, func() { woken++ }))
		}
		other.broadcasts()
		for _, d := range done {
			v.Awaits(d, "a waiter")
		}
		require.Equal(t, 5, woken)
		v.Queued(proving.CondPath, 0)
		v.Queued(proving.LockPath, 0)
	})
}
