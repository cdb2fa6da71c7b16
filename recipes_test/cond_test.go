package recipes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const condPath = "/conds/a"

// side is one session's view of a lock and its condition.
type side struct {
	s *zksync.Session
	m *zksync.Mutex
	c *zkcond.Cond
}

func (v *env) side(opts ...zksync.Option) *side {
	s := v.session(opts...)
	m := zksync.NewMutex(s, lockPath)
	return &side{s, m, zkcond.New(m, condPath)}
}

func (v *env) sides(n int) []*side {
	all := make([]*side, n)
	for i := range all {
		all[i] = v.side()
	}
	return all
}

// waits has somebody lock and wait, and returns when he does. then runs under the lock afterwards.
func (v *env) waits(w *side, then func()) (done <-chan struct{}) {
	v.t.Helper()
	before := len(v.children(condPath))
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.m.Lock()
		w.c.Wait()
		then()
		w.m.Unlock()
	}()
	v.queued(condPath, before+1)
	v.settled(lockPath, 0)
	return over
}

// signals locks, signals, and unlocks.
func (w *side) signals() {
	w.m.Lock()
	w.c.Signal()
	w.m.Unlock()
}

func (w *side) broadcasts() {
	w.m.Lock()
	w.c.Broadcast()
	w.m.Unlock()
}

// waitsContext is waits in the form with leases.
func (v *env) waitsContext(ctx context.Context, w *side) *attempt {
	v.t.Helper()
	before := len(v.children(condPath))
	l := v.lock(w.m)
	a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
	v.queued(condPath, before+1)
	v.settled(lockPath, 0)
	return a
}

func nothing() {}

func TestAcceptance037WaitReturnsAfterASignalByAnotherGoroutine(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.side()
		held := false
		done := v.waits(w, func() { held = w.m.Lease() != nil && w.m.Lease().Valid() })
		w.signals()
		v.awaits(done, "Wait")
		require.True(t, held, "it returns with the lock")
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

func TestAcceptance038WaitReturnsAfterASignalByAnotherSession(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w, other := v.side(), v.side()
		a := v.waitsContext(context.Background(), w)
		old := v.lock(other.m)
		require.NoError(t, other.c.SignalContext(context.Background(), old))
		v.quiet()
		require.True(t, a.pending(), "the lock is still held")
		require.NoError(t, old.Unlock())
		l := v.granted(a)
		require.True(t, l.Valid())
		require.Positive(t, l.Token().Compare(old.Token()), "a new lease")
		require.NoError(t, l.Unlock())
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

func TestAcceptance039WaitWithADeadlineHoldsTheLockAgain(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.side()
		l := v.lock(w.m)
		ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
		defer cancel()
		start := time.Now()
		again, err := w.c.WaitContext(ctx, l)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.within(start, 350*time.Millisecond, "WaitContext")
		require.GreaterOrEqual(t, time.Since(start), 250*time.Millisecond)
		require.NotNil(t, again, err)
		require.True(t, again.Valid())
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.Positive(t, again.Token().Compare(l.Token()))
		require.NoError(t, again.Unlock())
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

// The deadline bounds the whole call: who finds the lock taken then returns without it.
func TestAcceptance113ATimedWaitEndsInTimeAlthoughSomebodyHoldsTheLock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w, other := v.side(), v.side()
		l := v.lock(w.m)
		ctx, cancel := context.WithTimeout(context.Background(), v.span(250*time.Millisecond, time.Second))
		defer cancel()
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
		v.queued(condPath, 1)
		held := v.lock(other.m)
		v.awaits(a.done, "WaitContext")
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		require.ErrorIs(t, a.err, zksync.ErrNotAcquired)
		require.Nil(t, a.lease)
		if v.virtual {
			end, _ := ctx.Deadline()
			require.LessOrEqual(t, a.at.Sub(end), 100*time.Millisecond)
		}
		require.NoError(t, held.Unlock())
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

func TestAcceptance040WithoutTheLockThereIsNoWaitingAndNoSignal(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.side()
		require.Panics(t, w.c.Wait)
		require.Panics(t, w.c.Signal)
		require.Panics(t, w.c.Broadcast)
		l := v.lock(w.m)
		require.NoError(t, l.Unlock())
		ctx := context.Background()
		_, err := w.c.WaitContext(ctx, l)
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.ErrorIs(t, w.c.SignalContext(ctx, l), zksync.ErrReleased)
		require.ErrorIs(t, w.c.BroadcastContext(ctx, nil), zksync.ErrMisuse)
		_, err = w.c.WaitContext(ctx, nil)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		foreign := v.get(zksync.NewMutex(w.s, "/locks/b").LockContext)
		_, err = w.c.WaitContext(ctx, foreign)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorIs(t, w.c.SignalContext(ctx, foreign), zksync.ErrMisuse)
		require.True(t, foreign.Valid())
		require.NoError(t, foreign.Unlock())
		require.Empty(t, v.children(condPath))
	})
}

func TestMisuseOfAConditionIsReportedByTheFirstCall(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath)
		for _, c := range []*zkcond.Cond{
			zkcond.New(m, "a"), zkcond.New(m, lockPath), zkcond.New(m, lockPath+"/cond"),
			zkcond.New(new(sync.Mutex), condPath), zkcond.New(nil, condPath),
			zkcond.New(zksync.NewMutex(nil, lockPath), condPath),
		} {
			_, err := c.WaitContext(context.Background(), nil)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.Panics(t, c.Signal)
		}
	})
}

// The waiter is on the servers' list before anybody else can hold the lock: whatever happens under it
// afterwards finds him.
func TestAcceptance041ASignalSentRightAfterTheReleaseIsNeverLost(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rounds := 10000
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

func TestAcceptance045WaitReleasesAllLevelsAndRestoresThem(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
		c := zkcond.New(m, condPath)
		other := v.side()
		counts := make(chan int, 3)
		go func() {
			m.Lock()
			m.Lock()
			c.Wait()
			counts <- m.HoldCount()
			m.Unlock()
			counts <- m.HoldCount()
			m.Unlock()
			counts <- m.HoldCount()
		}()
		v.queued(condPath, 1)
		v.queued(lockPath, 0)
		other.signals()
		require.Equal(t, []int{2, 1, 0}, []int{<-counts, <-counts, <-counts})
		v.queued(lockPath, 0)

		// With leases: the level that waits has a new one, the others' Unlocks still count.
		ctx := reentrant.WithOwner(context.Background())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		inner, err := m.LockContext(ctx)
		require.NoError(t, err)
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, inner) })
		v.queued(condPath, 1)
		other.signals()
		again := v.granted(a)
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, inner.Unlock(), "it has ended, and is not counted twice")
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, again.Unlock())
		require.Equal(t, 1, m.HoldCountContext(ctx))
		v.queued(lockPath, 1)
		require.NoError(t, outer.Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance045WaitReleasesReadsInsideAWriteToo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.rrw(v.session())
		c := zkcond.New(m, condPath)
		other := v.rws(1)[0]
		counts := make(chan int, 2)
		go func() {
			m.Lock()
			m.Lock()
			m.RLock()
			c.Wait()
			counts <- m.HoldCount()
			counts <- m.ReadHoldCount()
			m.RUnlock()
			m.Unlock()
			m.Unlock()
		}()
		v.queued(condPath, 1)
		v.queued(lockPath, 0)
		require.NoError(t, other.Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
			return zkcond.New(other, condPath).SignalContext(ctx, l)
		}))
		require.Equal(t, []int{2, 1}, []int{<-counts, <-counts})
		v.queued(lockPath, 0)
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

func TestAConditionOfTheWriteSideOfAReadWriteLock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rws := v.rws(2)
		full := 0 // under the lock
		var conds []*zkcond.Cond
		for _, rw := range rws {
			conds = append(conds, zkcond.New(rw, condPath))
		}
		var all sync.WaitGroup
		all.Go(func() {
			rws[0].Lock()
			for full == 0 {
				conds[0].Wait()
			}
			full--
			rws[0].Unlock()
		})
		v.queued(condPath, 1)
		read := v.get(rws[1].RLockContext) // readers get in while it waits
		_, err := conds[1].WaitContext(context.Background(), read)
		require.ErrorIs(t, err, zksync.ErrMisuse, "a reader may not wait")
		require.Panics(t, conds[1].Signal)
		require.NoError(t, read.Unlock())
		rws[1].Lock()
		full++
		conds[1].Signal()
		rws[1].Unlock()
		all.Wait()
		require.Zero(t, full)
		v.queued(condPath, 0)
	})
}

func TestEveryFaultLeavesTheConditionSound(t *testing.T) {
	everyFault(t, 34, func(t *testing.T, v *env) func(string) {
		ws := v.sides(3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s section
			items, taken := 0, 0 // under the lock
			var all sync.WaitGroup
			for _, w := range ws[:2] {
				all.Go(func() {
					l, err := w.m.LockContext(ctx)
					require.NoError(t, err, name)
					for items == 0 {
						l, err = w.c.WaitContext(ctx, l)
						require.NoError(t, err, name)
					}
					s.pass()
					items--
					taken++
					require.NoError(t, l.Unlock(), name)
				})
			}
			all.Go(func() {
				for range 2 {
					<-time.After(10 * time.Millisecond)
					l, err := ws[2].m.LockContext(ctx)
					require.NoError(t, err, name)
					s.pass()
					items++
					require.NoError(t, ws[2].c.SignalContext(ctx, l), name)
					require.NoError(t, l.Unlock(), name)
				}
			})
			all.Wait()
			require.Equal(t, 2, taken, name)
			s.check(t, 4)
			v.later()
			require.Empty(t, v.srv.Children(lockPath), name)
			require.Empty(t, v.srv.Children(condPath), name)
			require.NoError(t, v.get(ws[2].m.LockContext).Unlock(), name)
		}
	})
}

// The same scenario, with what strikes a whole session instead of one request.
func TestEverySessionFaultLeavesTheConditionSound(t *testing.T) {
	strikes := map[string]func(v *env, id int64){
		"disconnect": func(v *env, id int64) { v.srv.Disconnect(id) },
		"expire":     func(v *env, id int64) { v.srv.Expire(id) },
	}
	for what, strike := range strikes {
		for nth := 1; nth <= 34; nth++ {
			inProcess(t, func(t *testing.T, v *env) {
				name := fmt.Sprintf("%s at request %d", what, nth)
				ws := v.sides(3)
				v.quiet()
				var n atomic.Int32
				v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op != zktest.Connect && q.Op != zktest.Ping {
						if n.Add(1) == int32(nth) {
							go strike(v, q.Session)
						}
					}
					return zktest.Verdict{}
				})
				items, taken := 0, 0 // under the lock
				var mu sync.Mutex    // of those whose hold was lost while they did not know
				var all sync.WaitGroup
				for _, w := range ws[:2] {
					all.Go(func() {
						w.m.Lock()
						defer w.m.Unlock()
						for {
							mu.Lock()
							got := items > 0
							if got {
								items--
								taken++
							}
							mu.Unlock()
							if got {
								return
							}
							w.c.Wait()
						}
					})
				}
				all.Go(func() {
					for range 2 {
						<-time.After(10 * time.Millisecond)
						ws[2].m.Lock()
						mu.Lock()
						items++
						mu.Unlock()
						ws[2].c.Signal()
						ws[2].m.Unlock()
					}
				})
				all.Wait()
				require.Equal(t, 2, taken, name)
				v.later()
				require.Empty(t, v.srv.Children(lockPath), name)
				require.Empty(t, v.srv.Children(condPath), name)
			})
		}
	}
}

// The cost: a wait is one request to give the lock up and three to wait, of which those who are not
// first need two; a signal is three, none of which depends on how many wait.
func TestAcceptance115WhatConditionsCost(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		calmSide := func() *side {
			m := zksync.NewMutex(calm(v), lockPath)
			return &side{m: m, c: zkcond.New(m, condPath)}
		}
		v.put(condPath, "")
		other := calmSide()
		held := v.lock(other.m)
		require.Equal(t, 1, v.costs(func() { require.NoError(t, other.c.SignalContext(context.Background(), held)) }), "nobody waits")
		require.NoError(t, held.Unlock())
		var as []*attempt
		for i, want := range []int{4, 3, 3} {
			w := calmSide()
			l := v.lock(w.m)
			require.Equal(t, want, v.costs(func() {
				as = append(as, call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) }))
				v.queued(condPath, i+1)
			}), "waiter %d", i)
		}
		held = v.lock(other.m)
		// Three for the signal; the one it wakes reads it, queues for the lock, and watches.
		require.Equal(t, 3+1+3, v.costs(func() { require.NoError(t, other.c.SignalContext(context.Background(), held)) }))
		// Unlock, then the signal is used up; the next waiter lists, watches, and reads.
		require.Equal(t, 1+1+3, v.costs(func() {
			require.NoError(t, held.Unlock())
			v.granted(as[0])
		}))
		require.NoError(t, as[0].lease.Unlock())
		held = v.lock(other.m)
		require.NoError(t, other.c.BroadcastContext(context.Background(), held))
		require.NoError(t, held.Unlock())
		require.NoError(t, v.granted(as[1]).Unlock())
		require.NoError(t, v.granted(as[2]).Unlock())
	})
}
