package atomic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	slotPath = "/atomics/slots"
	taken    = slotPath + "/zkatomic.Slots/taken"
	looking  = slotPath + "/zkatomic.Slots/queue"
)

// acquire starts Acquire in a goroutine of its own. slot is what it got, once the attempt is done.
func acquire(ctx context.Context, x *zkatomic.Slots) (a *proving.Attempt, slot *int) {
	slot = new(int)
	return proving.Call(ctx, func(ctx context.Context) (l *zksync.Lease, err error) {
		*slot, l, err = x.Acquire(ctx)
		return l, err
	}), slot
}

// take acquires now.
func take(v *proving.Env, x *zkatomic.Slots) (int, *zksync.Lease) {
	v.T.Helper()
	a, slot := acquire(context.Background(), x)
	return *slot, v.Granted(a)
}

func TestAcceptance144TheLeastFreeSlotIsGivenAndOneMoreWaits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := zkatomic.NewSlots(v.Session(), slotPath, 3), zkatomic.NewSlots(v.Session(), slotPath, 3)
		var leases []*zksync.Lease
		for want, x := range []*zkatomic.Slots{a, b, a} {
			a, slot := acquire(context.Background(), x)
			l := v.Granted(a)
			require.Equal(t, want, *slot)
			leases = append(leases, l)
		}
		first, one := acquire(context.Background(), b)
		v.Queued(looking, 1)
		second, two := acquire(context.Background(), a)
		v.Queued(looking, 2)
		v.Quiet()
		require.True(t, first.Pending() && second.Pending())
		require.NoError(t, leases[2].Unlock())
		l := v.Granted(first)
		require.Equal(t, 2, *one)
		require.Positive(t, l.Token().Compare(leases[2].Token()))
		require.True(t, second.Pending(), "those who wait get one in order")
		require.NoError(t, leases[0].Unlock())
		v.Granted(second)
		require.Equal(t, 0, *two)
		_, err := l.Guard(t.Context(), proving.Write("x"))
		require.Error(t, err, "there is no such node")
		require.NotErrorIs(t, err, zksync.ErrLost, "the lease guards")
	})
}

func TestAcceptance144ADeadHoldersSlotIsFreeAfterItsSession(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		_, dead := take(v, zkatomic.NewSlots(s, slotPath, 1))
		next, slot := acquire(context.Background(), zkatomic.NewSlots(v.Session(), slotPath, 1))
		v.Queued(looking, 1)
		heal := v.Partition(s)
		defer heal()
		l := v.Granted(next)
		require.Equal(t, 0, *slot)
		require.ErrorIs(t, dead.Err(), zksync.ErrLost, "it was told before another got the slot")
		require.Positive(t, l.Token().Compare(dead.Token()))
	})
}

func TestACancelledAcquireLeavesNothingAndCloseReleases(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		a, b := zkatomic.NewSlots(s, slotPath, 1), zkatomic.NewSlots(v.Session(), slotPath, 1)
		_, l := take(v, a)
		ctx, start := proving.Soon(t)
		waits, _ := acquire(ctx, b)
		require.ErrorIs(t, v.Failed(waits), context.DeadlineExceeded)
		v.Within(start, proving.Deadline, "it gives up in time")
		v.Left(looking, 0, "queue")
		v.Left(taken, 1, "taken slots")
		require.NoError(t, s.Close())
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		slot, _ := take(v, b)
		require.Equal(t, 0, slot)
		_, _, err := a.Acquire(t.Context())
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

func TestOfSlotsTheNumberMustBeTheSame(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		take(v, zkatomic.NewSlots(v.Session(), slotPath, 2))
		for _, n := range []int{3, 0} {
			_, _, err := zkatomic.NewSlots(v.Session(), slotPath, n).Acquire(t.Context())
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, slotPath)
		}
	})
}

func TestAcceptance141EveryFaultLeavesTheSlotsSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		var xs []*zkatomic.Slots
		for range 3 {
			xs = append(xs, zkatomic.NewSlots(v.Session(), slotPath, 2))
		}
		return func(name string) {
			held := map[int]*zksync.Lease{}
			for _, x := range xs[:2] {
				a, slot := acquire(context.Background(), x)
				l := v.Granted(a)
				require.Nil(t, held[*slot], name)
				held[*slot] = l
			}
			last, slot := acquire(context.Background(), xs[2])
			v.PassAWhile()
			require.True(t, last.Pending(), "%s: a third has a slot of two", name)
			require.NoError(t, held[0].Unlock(), name)
			l := v.Granted(last)
			require.Equal(t, 0, *slot, name)
			require.NoError(t, l.Unlock(), name)
			require.NoError(t, held[1].Unlock(), name)
			v.PassAWhile()
			v.Left(taken, 0, name)
			v.Left(looking, 0, name)
		}
	})
}

// Five sessions take and give slots, while they are cut off, and end. No slot has two valid leases at any instant, and in
// the end all slots are free.
func TestAcceptance144NoSlotHasTwoHoldersThroughRandomFaults(t *testing.T) {
	for seed := range proving.Rounds(20) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			r := rand.New(rand.NewPCG(uint64(seed), 3))
			const slots = 3
			var mu sync.Mutex
			holders, most := map[int][]*zksync.Lease{}, 0
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			var sessions []*zksync.Session
			for i := range 5 {
				s := v.Session(zksync.WithTimeout(4 * time.Second))
				sessions = append(sessions, s)
				x, own := zkatomic.NewSlots(s, slotPath, slots), rand.New(rand.NewPCG(uint64(seed), uint64(i)+10))
				all.Go(func() {
					for ctx.Err() == nil {
						slot, l, err := x.Acquire(ctx)
						if err != nil {
							assert.ErrorIs(t, err, context.DeadlineExceeded)
							return
						}
						assert.True(t, 0 <= slot && slot < slots)
						mu.Lock()
						for _, other := range holders[slot] {
							assert.False(t, other.Valid() && l.Valid(), "seed %d: slot %d has two holders", seed, slot)
							assert.Positive(t, l.Token().Compare(other.Token()))
						}
						holders[slot] = append(holders[slot], l)
						most = max(most, len(holders[slot]))
						mu.Unlock()
						time.Sleep(time.Duration(own.IntN(3000)) * time.Millisecond)
						_ = l.Unlock()
					}
				})
			}
			for ctx.Err() == nil {
				time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
				switch s := sessions[r.IntN(len(sessions))]; r.IntN(3) {
				case 0:
					v.Server.Disconnect(s.ID())
				case 1: // perhaps for longer than the session lives
					heal := v.Server.Partition(s.ID())
					time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
					heal()
				}
			}
			all.Wait()
			v.Later()
			require.Greater(t, most, 5, "slots changed hands")
			require.Empty(t, v.Server.Children(taken), "seed %d", seed)
			require.Empty(t, v.Server.Children(looking), "seed %d", seed)
		})
	}
}

func TestASequenceGivesEachNumberOnce(t *testing.T) {
	for _, block := range []int64{1, 10} {
		t.Run(fmt.Sprint("block ", block), func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				seen := make(map[int64]bool)
				for range 3 { // one after the other: a process that ends leaves the rest of its block out
					q := zkatomic.NewSequence(v.Session(), "/atomics/ids", zkatomic.WithBlock(block))
					last := int64(0)
					for range 15 {
						n, err := q.Next(t.Context())
						require.NoError(t, err)
						require.Greater(t, n, last, "it grows in a process")
						require.False(t, seen[n])
						seen[n], last = true, n
					}
				}
				if block == 1 {
					require.True(t, seen[45], "nothing is left out")
				}
			})
		})
	}
}

// The answer that grants a slot arrives at the instant at which the context ends.
func TestASlotGrantedAsTheContextEndsIsHeldOrFree(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		x := zkatomic.NewSlots(s, slotPath, 1)
		_, l, err := x.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		v.Server.Delay(s.ID(), time.Millisecond, time.Millisecond)
		granted := 0
		for range 400 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Millisecond)
			_, l, err := x.Acquire(ctx)
			cancel()
			if err == nil {
				granted++
				require.NoError(t, l.Unlock())
			}
			time.Sleep(time.Second) // whatever the session does
			require.Empty(t, v.Children(taken), err)
		}
		require.NotZero(t, granted, "the context ended too early")
	})
}
