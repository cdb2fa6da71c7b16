package recipes_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const dying = 10 * time.Second // the session timeout of whoever dies

// mortal opens a session that kill silences for good, or until heal: the servers hear nothing of it, nor of
// another session of its process.
func (v *env) mortal() (s *zksync.Session, kill func() (heal func())) {
	v.t.Helper()
	if !v.virtual {
		s = v.session(zksync.WithTimeout(dying))
		return s, func() func() { return v.partition(s) }
	}
	var dead atomic.Bool
	s = v.session(zksync.WithTimeout(dying), zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dead.Load() {
			return nil, net.ErrClosed
		}
		return v.srv.DialContext(ctx, network, address)
	}))
	return s, func() func() {
		dead.Store(true)
		heal := v.srv.Partition(s.ID())
		return func() {
			dead.Store(false)
			heal()
		}
	}
}

// oneDies has four of five parties wait, the victim among them in this place.
func (v *env) oneDies(place int, victim *zksync.Session, opts ...zksync.Option) (dead *awaiting, others []*awaiting, spare []*zkbarrier.Barrier) {
	v.t.Helper()
	spare = v.barriers(5, opts...)
	for i := range 4 {
		if i == 3 { // the others have looked around by now
			pause(v.t, v, 2500*time.Millisecond)
		}
		if i == place {
			dead = await(context.Background(), zkbarrier.NewBarrier(victim, barrierPath, 5, opts...))
		} else {
			others = append(others, await(context.Background(), spare[i]))
		}
		v.gathered(spare[4], i+1)
	}
	return dead, others, spare
}

func TestAcceptance063TheDeathOfAPartyBreaksAStrictBarrierForAllOthers(t *testing.T) {
	for place := range 4 {
		t.Run(fmt.Sprint("place ", place), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				victim, kill := v.mortal()
				dead, others, spare := v.oneDies(place, victim)
				start := time.Now()
				heal := kill()
				v.brokenFor(others...)
				// The servers may have heard of it a third of the timeout before; it ends at a tick after that.
				v.within(start, dying+100*time.Millisecond, "noticing the death")
				v.broken(spare[4], true)
				heal()
				v.brokenFor(dead)
				v.emptied()
				require.NoError(t, spare[0].Reset(context.Background()))
				v.flush()
				v.leave(awaitAll(context.Background(), spare...)...)
			})
		})
	}
}

// A session that is ended at once, before anybody watches its node, is noticed soon too.
func TestAcceptance063AnEndOfASessionBreaksAStrictBarrierForAllOthers(t *testing.T) {
	for place := range 4 {
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			for name, ends := range map[string]func(v *env, s *zksync.Session){
				"expires": func(v *env, s *zksync.Session) { v.expire(s) },
				"closes":  func(v *env, s *zksync.Session) { require.NoError(v.t, s.Close()) },
			} {
				t.Run(fmt.Sprint("place ", place, name, wait), func(t *testing.T) {
					each(t, func(t *testing.T, v *env) {
						victim := v.session()
						dead, others, spare := v.oneDies(place, victim)
						pause(t, v, wait)
						ends(v, victim)
						start := time.Now() // on real servers an end takes its time
						v.brokenFor(others...)
						v.within(start, time.Second, "noticing the end")
						v.awaits(dead.done, "Await to return")
						if name == "closes" {
							require.ErrorIs(t, dead.err, zksync.ErrClosed)
						} else {
							require.ErrorIs(t, dead.err, zksync.ErrBroken)
						}
						v.broken(spare[4], true)
						v.emptied()
					})
				})
			}
		}
	}
}

// The one who comes next finds out that another is gone, before anybody else could have noticed.
func TestAPartyThatArrivesBehindADeadOneBreaksTheBarrier(t *testing.T) {
	for others := range 2 {
		t.Run(fmt.Sprint(others, " others"), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				bs := v.barriers(4)
				s := v.session()
				dead := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 4))
				v.gathered(bs[0], 1)
				rest := awaitAll(context.Background(), bs[1:1+others]...)
				v.gathered(bs[0], 1+others)
				start := time.Now()
				require.NoError(t, s.Close())
				v.awaits(dead.done, "Await to return")
				_, err := bs[0].Await(context.Background())
				require.ErrorIs(t, err, zksync.ErrBroken)
				v.brokenFor(rest...)
				v.atOnce(start, "noticing")
			})
		})
	}
}

func TestAcceptance063ATolerantBarrierWaitsForAReplacementOfADeadParty(t *testing.T) {
	for place := range 4 {
		t.Run(fmt.Sprint("place ", place), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				victim, kill := v.mortal()
				dead, others, spare := v.oneDies(place, victim, zkbarrier.Tolerant())
				heal := kill()
				defer heal()
				v.eventuallyWaiting(spare[4], 3)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := spare[4].Await(ctx) // one more who gives up
				require.ErrorIs(t, err, context.DeadlineExceeded)
				v.eventuallyWaiting(spare[4], 3)
				v.broken(spare[4], false)
				for _, a := range others {
					require.True(t, a.pending(), "%v", a.err)
				}
				require.True(t, dead.pending())
				v.leave(append(others, awaitAll(context.Background(), spare[4], spare[place])...)...)
			})
		})
	}
}

func (v *env) eventuallyWaiting(b *zkbarrier.Barrier, n int) {
	v.t.Helper()
	v.inTime(func() bool {
		got, err := b.Waiting(context.Background())
		require.NoError(v.t, err)
		return got == n
	})
}

// A tolerant party is taken in again when its session was lost.
func TestAPartyOfATolerantBarrierOutlivesItsSession(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := v.barriers(3, zkbarrier.Tolerant())
		a := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 3, zkbarrier.Tolerant()))
		v.gathered(bs[0], 1)
		b := await(context.Background(), bs[0])
		v.gathered(bs[0], 2)
		old := s.ID()
		v.expire(s)
		v.inTime(func() bool { return s.ID() != old })
		v.eventuallyWaiting(bs[1], 2)
		v.leave(a, b, await(context.Background(), bs[1]))
		v.emptied()
	})
}

// inTime asks once a second.
func (v *env) inTime(cond func() bool) {
	v.t.Helper()
	for start := time.Now(); !cond(); <-time.After(time.Second) {
		require.Less(v.t, time.Since(start), v.span(time.Minute, v.patience()))
	}
}

// A request that is applied twice makes two nodes of one party. They count as one.
func TestADuplicatedArrivalCountsOnce(t *testing.T) {
	for _, opts := range [][]zksync.Option{nil, {zkbarrier.Tolerant()}} {
		inProcess(t, func(t *testing.T, v *env) {
			bs := v.barriers(3, opts...)
			v.waitingAt(bs[0], 0)
			v.srv.Intercept(zktest.On(zktest.Create, barrierPath+"/parties-*/*").Times(2).Duplicate())
			first := await(context.Background(), bs[0])
			v.gathered(bs[1], 1)
			require.Len(t, v.srv.Children(barrierPath+"/parties-0"), 2)
			second := await(context.Background(), bs[1])
			v.gathered(bs[1], 2)
			require.True(t, first.pending() && second.pending())
			last := await(context.Background(), bs[2])
			v.leave(first, second, last)
			require.Equal(t, []int{2, 1, 0}, []int{first.index, second.index, last.index})
			v.emptied()
			v.leave(awaitAll(context.Background(), bs...)...)
			// A party that gives up takes both of its nodes along.
			v.srv.Intercept(zktest.On(zktest.Create, barrierPath+"/parties-*/*").Times(1).Duplicate())
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := bs[0].Await(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			v.emptied()
		})
	}
}

// What people do by hand on the servers breaks a barrier, or is mended; nobody hangs.
func TestWhatIsDeletedByHandBreaksTheBarrierOrIsMended(t *testing.T) {
	for name, remove := range map[string]func(v *env){
		"the open node": func(v *env) { v.remove(barrierPath + "/open-0") },
		"a party":       func(v *env) { v.remove(barrierPath + "/parties-0/" + v.children(barrierPath + "/parties-0")[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				bs := v.barriers(3)
				all := awaitAll(context.Background(), bs[:2]...)
				v.gathered(bs[2], 2)
				remove(v)
				v.brokenFor(all...)
				require.NoError(t, bs[2].Reset(context.Background()))
				v.flush()
				v.leave(awaitAll(context.Background(), bs...)...)
			})
		})
	}
	t.Run("the directory", func(t *testing.T) {
		each(t, func(t *testing.T, v *env) {
			bs := v.barriers(2)
			v.waitingAt(bs[0], 0)
			v.remove(barrierPath + "/parties-0")
			v.leave(awaitAll(context.Background(), bs...)...)
			v.remove(barrierPath + "/open-1")
			require.NoError(t, bs[0].Reset(context.Background()))
			v.flush()
			v.leave(awaitAll(context.Background(), bs...)...)
			v.put(barrierPath+"/parties-3/notes", "")
			_, err := bs[0].Await(context.Background())
			require.ErrorIs(t, err, zksync.ErrBroken, "a child that is nobody's")
		})
	})
}
