package mutex_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// weather is what happens to the members of an ensemble; each entry takes itself back.
type weather struct {
	e    *zktest.Ensemble
	undo map[string]func()
}

// strike lets one thing happen to one member, or takes it back if it lasts.
func (w *weather) strike(kind string, i int) {
	key := fmt.Sprintf("%s %d", kind, i)
	if undo := w.undo[key]; undo != nil {
		delete(w.undo, key)
		undo()
		return
	}
	switch s := w.e.Server(i); kind {
	case "lag":
		if w.e.Leader() != i {
			w.undo[key] = w.e.Lag(i)
		}
	case "isolate":
		w.undo[key] = w.e.Isolate(i)
	case "freeze":
		w.undo[key] = s.Freeze()
	case "stop":
		s.Stop()
		w.undo[key] = s.Restart
	}
}

// clear takes everything back.
func (w *weather) clear() {
	for _, undo := range w.undo {
		undo()
	}
}

// lockers take turns with a mutex.
func lockers(t testing.TB, book *tenures, s *zksync.Session, _ int) func(context.Context) (*zksync.Lease, error) {
	m := zksync.NewMutex(s, proving.LockPath)
	return func(ctx context.Context) (*zksync.Lease, error) {
		l, err := m.LockContext(ctx)
		if err == nil {
			book.take(t, l)
		}
		return l, err
	}
}

// visitors share a lock: two write, two read.
func visitors(t testing.TB, book *tenures, s *zksync.Session, i int) func(context.Context) (*zksync.Lease, error) {
	rw := zkrwmutex.New(s, proving.LockPath)
	if i%2 == 0 {
		return func(ctx context.Context) (*zksync.Lease, error) {
			l, err := rw.LockContext(ctx)
			if err == nil {
				book.take(t, l)
			}
			return l, err
		}
	}
	return func(ctx context.Context) (*zksync.Lease, error) {
		l, err := rw.RLockContext(ctx)
		if err == nil {
			book.share(t, l, 1, 0)
		}
		return l, err
	}
}

// customers want one or two of two permits.
func customers(t testing.TB, book *tenures, s *zksync.Session, i int) func(context.Context) (*zksync.Lease, error) {
	const permits = 2
	w := zksemaphore.NewWeighted(s, proving.SemPath, permits)
	n := int64(1 + i%permits)
	return func(ctx context.Context) (*zksync.Lease, error) {
		l, err := w.AcquireLease(ctx, n)
		if err == nil {
			book.share(t, l, n, permits)
		}
		return l, err
	}
}

// takesTurns has a session get, hold and give back until the context ends.
func takesTurns(ctx context.Context, get func(context.Context) (*zksync.Lease, error), hold time.Duration) {
	for ctx.Err() == nil {
		l, err := get(ctx)
		if err != nil {
			continue
		}
		time.Sleep(hold)
		_ = l.Unlock() // the weather may have taken it
		time.Sleep(time.Millisecond)
	}
}

// mishap is one thing that happens, after a while.
type mishap struct {
	kind   string
	member int
	wait   time.Duration
}

func drawMishap(members int, tick time.Duration) *rapid.Generator[mishap] {
	return rapid.Custom(func(rt *rapid.T) mishap {
		return mishap{
			kind:   rapid.SampledFrom([]string{"lag", "isolate", "isolate", "freeze", "stop"}).Draw(rt, "kind"),
			member: rapid.IntRange(0, members-1).Draw(rt, "member"),
			wait:   time.Duration(rapid.IntRange(0, int(8*tick/time.Millisecond)).Draw(rt, "wait")) * time.Millisecond,
		}
	})
}

// Whatever happens between the servers, no two leases are valid at one time, and everybody gets on in the end.
func TestNoTwoHoldInAnyWeatherBetweenTheServers(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) { storm(proving.InRapid(t, rt), rt, lockers) })
	})
}

// The same for what may be shared.
func TestNoTooManyShareInAnyWeatherBetweenTheServers(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	for name, crowd := range map[string]crowd{"readers and writers": visitors, "permits": customers} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rapid.SyncTest(rt, func(rt *rapid.T) { storm(proving.InRapid(t, rt), rt, crowd) })
			})
		})
	}
}

// crowd makes what a session does in its turn.
type crowd func(t testing.TB, book *tenures, s *zksync.Session, i int) func(context.Context) (*zksync.Lease, error)

func storm(t testing.TB, rt *rapid.T, who crowd) {
	n := rapid.SampledFrom([]int{3, 3, 5}).Draw(rt, "members")
	tick := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second}).Draw(rt, "tick")
	timeout := time.Duration(rapid.IntRange(2, 10).Draw(rt, "ticks")) * tick
	mishaps := rapid.SliceOfN(drawMishap(n, tick), 1, 20).Draw(rt, "mishaps")

	w := &weather{e: zktest.RunEnsemble(t, n, zktest.WithTick(tick)), undo: map[string]func(){}}
	var book tenures
	ctx, cancel := context.WithCancel(context.Background())
	var turns sync.WaitGroup
	for i := range 4 {
		s := w.e.Session(t, zksync.WithTimeout(timeout))
		turns.Go(func() { takesTurns(ctx, who(t, &book, s, i), time.Duration(i+1)*tick/3) })
	}
	for _, b := range mishaps {
		time.Sleep(b.wait)
		w.strike(b.kind, b.member)
	}
	w.clear()
	w.e.WaitLeader(t)
	time.Sleep(2*timeout + 10*tick)
	before := book.count()
	time.Sleep(4*timeout + 10*tick)
	require.Greater(t, book.count(), before, "nobody gets on")
	cancel()
	turns.Wait()
	time.Sleep(2*timeout + 10*tick) // sessions that were asked for in vain end
}
