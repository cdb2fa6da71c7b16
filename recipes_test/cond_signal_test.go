package recipes_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// The waiter is on the servers' list before anybody else can hold the lock: whatever happens under it
// afterwards finds him.
func TestAcceptance041ASignalSentRightAfterTheReleaseIsNeverLost(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rounds := rounds(10000)
		if !v.virtual {
			rounds = 200
		}
		a, b := v.side(), v.side()
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
		v.queued(condPath, 0)
	})
}

func TestAcceptance042SignalWakesTheOldestAndBroadcastAllInOrder(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ws := v.sides(5)
		var order []int // under the lock
		var done []<-chan struct{}
		for i, w := range ws[:4] {
			done = append(done, v.waits(w, func() { order = append(order, i) }))
		}
		ws[4].signals()
		v.awaits(done[0], "the oldest")
		v.settled(condPath, 3)
		start := time.Now()
		ws[4].broadcasts()
		for _, d := range done[1:] {
			v.awaits(d, "the others")
		}
		v.atOnce(start, "each hears of the one before")
		require.Equal(t, []int{0, 1, 2, 3}, order)
		v.queued(condPath, 0)
		ws[4].signals() // nobody waits: nothing is kept for later
		ws[4].broadcasts()
		late := v.waits(ws[0], nothing)
		v.quiet()
		select {
		case <-late:
			require.Fail(t, "woken by a signal that was sent before it waited")
		default:
		}
		ws[4].signals()
		v.awaits(late, "the last one")
	})
}

// Two signals in a row are for two waiters, also before the first one has got the lock.
func TestTwoSignalsUnderOneHoldWakeTwo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ws := v.sides(4)
		a, b, c := v.waits(ws[0], nothing), v.waits(ws[1], nothing), v.waits(ws[2], nothing)
		ws[3].m.Lock()
		ws[3].c.Signal()
		ws[3].c.Signal()
		ws[3].m.Unlock()
		v.awaits(a, "the first")
		v.awaits(b, "the second")
		v.settled(condPath, 1)
		ws[3].signals()
		v.awaits(c, "the third")
	})
}

func TestAcceptance043ConditionsOfOneLockAreIndependent(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w, other := v.side(), v.side()
		full := zkcond.New(other.m, "/conds/b")
		a := v.waits(w, nothing)
		other.m.Lock()
		full.Broadcast()
		full.Signal()
		other.m.Unlock()
		v.quiet()
		select {
		case <-a:
			require.Fail(t, "woken by the other condition")
		default:
		}
		other.signals()
		v.awaits(a, "Wait")
	})
}

// Whoever was signalled ends in some way before it holds the lock again: another one who waited then is
// woken instead.
func TestAcceptance044ASignalledWaiterThatDoesNotComePassesTheSignalOn(t *testing.T) {
	ends := map[string]func(v *env, w *side, cancel func()){
		"cancelled": func(_ *env, _ *side, cancel func()) { cancel() },
		"expired":   func(v *env, w *side, _ func()) { v.expire(w.s) },
		"closed":    func(_ *env, w *side, _ func()) { _ = w.s.Close() },
		"deleted": func(v *env, _ *side, _ func()) {
			oldest := v.children(condPath)
			slices.SortFunc(oldest, func(a, b string) int {
				return strings.Compare(a[strings.Index(a, "-wait-"):], b[strings.Index(b, "-wait-"):])
			})
			v.remove(condPath + "/" + oldest[0])
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				first, second, other := v.side(), v.side(), v.side()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				a := v.waitsContext(ctx, first)
				b := v.waits(second, nothing)
				held := v.lock(other.m)
				require.NoError(t, other.c.SignalContext(context.Background(), held))
				v.settled(lockPath, 2) // the first one queues for the lock
				end(v, first, cancel)
				if name == "cancelled" || name == "closed" {
					v.awaits(a.done, "the first one")
					require.Nil(t, a.lease)
				}
				require.NoError(t, held.Unlock())
				if name == "expired" || name == "deleted" { // as if it had been woken: it may have missed a signal
					require.NoError(t, v.granted(a).Unlock())
				}
				v.awaits(b, "the second one, who waited as well")
				v.queued(condPath, 0)
				v.queued(lockPath, 0)
			})
		})
	}
}

// A signal goes to nobody who began to wait after it was sent.
func TestASignalThatIsPassedOnIsNotForWhoCameLater(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		first, other, later := v.side(), v.side(), v.side()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a := v.waitsContext(ctx, first)
		held := v.lock(other.m)
		require.NoError(t, other.c.SignalContext(context.Background(), held))
		b := call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { // begins to wait ...
			l, err := later.m.LockContext(ctx)
			if err != nil {
				return nil, err
			}
			return later.c.WaitContext(ctx, l)
		})
		v.settled(lockPath, 3)
		cancel() // ... and is next for the lock now
		v.awaits(a.done, "the first one")
		require.NoError(t, held.Unlock())
		v.settled(lockPath, 0)
		require.True(t, b.pending())
		other.signals()
		require.NoError(t, v.granted(b).Unlock())
	})
}

func TestAcceptance046BroadcastWithSeveralWaitersOfOneProcessDoesNotDeadlock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w, other := v.side(), v.side()
		woken := 0 // under the lock
		var done []<-chan struct{}
		for range 5 {
			done = append(done, v.waits(w, func() { woken++ }))
		}
		other.broadcasts()
		for _, d := range done {
			v.awaits(d, "a waiter")
		}
		require.Equal(t, 5, woken)
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}
