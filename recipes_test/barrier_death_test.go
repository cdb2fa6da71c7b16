package recipes_test

import (
	"context"
	"errors"
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
func (v *env) oneDies(place int, victim *zksync.Session, opts ...zkbarrier.BarrierOption) (dead *awaiting, others []*awaiting, spare []*zkbarrier.Barrier) {
	v.t.Helper()
	spare = v.barriers(5, opts...)
	for i := range 4 {
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
				v.within(start, dying+v.span(100*time.Millisecond, 4*time.Second), "noticing the death")
				v.broken(spare[4], true)
				heal()
				v.brokenFor(dead)
				v.emptied()
				require.NoError(t, spare[0].Reset(context.Background()))
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
						start := time.Now()
						ends(v, victim)
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
		for _, action := range []bool{false, true} {
			t.Run(fmt.Sprint("place ", place, action), func(t *testing.T) {
				each(t, func(t *testing.T, v *env) {
					opts := []zkbarrier.BarrierOption{zkbarrier.Tolerant()}
					var runs atomic.Int32
					if action {
						opts = append(opts, zkbarrier.WithAction(func(context.Context) error { runs.Add(1); return nil }))
					}
					victim, kill := v.mortal()
					dead, others, spare := v.oneDies(place, victim, opts...)
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
					if action {
						require.EqualValues(t, 1, runs.Load())
					}
				})
			})
		}
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
		require.Less(v.t, time.Since(start), time.Minute)
	}
}

func TestADeathOfWhoRunsTheActionBreaksAStrictBarrierAndIsMadeGoodAtATolerantOne(t *testing.T) {
	eachKind(t, func(t *testing.T, v *env, opts ...zkbarrier.BarrierOption) {
		tolerant := len(opts) > 0
		running := make(chan struct{}, 5)
		var told atomic.Value
		var ran atomic.Int32
		action := zkbarrier.WithAction(func(ctx context.Context) error {
			running <- struct{}{}
			if ran.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			told.Store(context.Cause(ctx))
			return ctx.Err()
		})
		opts = append(opts, action)
		s := v.session()
		bs := v.barriers(3, opts...)
		others := awaitAll(context.Background(), bs[:2]...)
		v.gathered(bs[2], 2)
		runner := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 3, opts...))
		v.awaits(running, "the action")
		v.expire(s)
		if tolerant { // it comes again, is the last again, and runs it again
			v.leave(append(others, runner)...)
			require.EqualValues(t, 2, ran.Load())
		} else {
			v.brokenFor(others...)
			v.brokenFor(runner)
			require.ErrorIs(t, runner.err, context.Canceled, "what the action said")
		}
		require.ErrorIs(t, told.Load().(error), zksync.ErrLost)
		v.emptied()
	})
}

// Each of those who wait may die while the action runs, also the one next to the runner.
func TestADeathWhileTheActionRunsBreaksAStrictBarrier(t *testing.T) {
	for place := range 2 {
		t.Run(fmt.Sprint("place ", place), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				victim, kill := v.mortal()
				running := make(chan struct{})
				action := zkbarrier.WithAction(func(ctx context.Context) error {
					close(running)
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					return context.Cause(ctx)
				})
				bs := v.barriers(3, action)
				bs[place] = zkbarrier.NewBarrier(victim, barrierPath, 3, action)
				var all []*awaiting
				for i, b := range bs {
					all = append(all, await(context.Background(), b))
					if i < 2 {
						v.gathered(bs[2], i+1)
					}
				}
				v.awaits(running, "the action")
				start := time.Now()
				heal := kill()
				v.brokenFor(all[1-place], all[2])
				v.within(start, dying+v.span(100*time.Millisecond, 4*time.Second), "noticing the death")
				heal()
				v.brokenFor(all[place])
				v.emptied()
			})
		})
	}
}

func TestAPartyThatGivesUpWhileTheActionRuns(t *testing.T) {
	eachKind(t, func(t *testing.T, v *env, opts ...zkbarrier.BarrierOption) {
		tolerant := len(opts) > 0
		var runs atomic.Int32
		opts = append(opts, zkbarrier.WithAction(func(ctx context.Context) error {
			runs.Add(1)
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		bs := v.barriers(3, opts...)
		patient := await(context.Background(), bs[0])
		v.gathered(bs[2], 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		other := await(ctx, bs[1])
		v.gathered(bs[2], 2)
		last := await(context.Background(), bs[2])
		v.inTime(func() bool { return runs.Load() == 1 })
		start := time.Now()
		cancel()
		v.awaits(other.done, "Await to return")
		require.ErrorIs(t, other.err, context.Canceled)
		v.atOnce(start, "giving up")
		if !tolerant {
			v.brokenFor(patient, last)
			v.emptied()
			return
		}
		// Somebody who comes now belongs to the next generation, though there seems to be room.
		late := await(context.Background(), bs[1])
		v.awaits(last.done, "Await to return")
		v.awaits(patient.done, "Await to return")
		require.NoError(t, errors.Join(last.err, patient.err))
		require.Equal(t, []int{2, 0}, []int{patient.index, last.index})
		v.gathered(bs[0], 1)
		require.True(t, late.pending(), "%v", late.err)
		require.EqualValues(t, 1, runs.Load())
		v.leave(append(awaitAll(context.Background(), bs[0], bs[2]), late)...)
		require.EqualValues(t, 2, runs.Load())
	})
}

// tripped has a party cut off while its generation is completed, until its session is over.
func (v *env) tripped(later func(bs []*zkbarrier.Barrier), opts ...zkbarrier.BarrierOption) *awaiting {
	v.t.Helper()
	s, kill := v.mortal()
	bs := v.barriers(2, opts...)
	slow := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 2, opts...))
	v.gathered(bs[0], 1)
	heal := kill()
	_, err := bs[0].Await(context.Background())
	require.NoError(v.t, err)
	later(bs)
	pause(v.t, v, 2*dying)
	require.True(v.t, slow.pending(), "%v", slow.err)
	heal()
	v.awaits(slow.done, "Await to return")
	return slow
}

func TestAcceptance064APartyThatLostItsSessionIsToldThatItsGenerationWasComplete(t *testing.T) {
	for _, later := range []int{0, 10} {
		t.Run(fmt.Sprint(later, " generations later"), func(t *testing.T) {
			eachKind(t, func(t *testing.T, v *env, opts ...zkbarrier.BarrierOption) {
				a := v.tripped(func(bs []*zkbarrier.Barrier) {
					for i := range later {
						if i%3 == 0 {
							require.NoError(t, bs[0].Reset(context.Background()))
						}
						v.leave(awaitAll(context.Background(), bs...)...)
					}
				}, opts...)
				require.NoError(t, a.err)
				require.Equal(t, 1, a.index)
			})
		})
	}
}

func TestAPartyThatLostItsSessionLongAgoIsToldThatNobodyKnows(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		a := v.tripped(func(bs []*zkbarrier.Barrier) {
			for range 40 {
				v.leave(awaitAll(context.Background(), bs...)...)
			}
		})
		require.ErrorIs(t, a.err, zksync.ErrSessionExpired)
		require.NotErrorIs(t, a.err, zksync.ErrBroken)
		require.Equal(t, -1, a.index)
		require.Len(t, v.children(barrierPath), 2+32, "the ends of 32 generations")
	})
}

// As long as its session lives, its own node tells a party whether it was let go.
func TestAcceptance064ASlowWaiterIsToldThoughTheRecordOfItsGenerationIsGone(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(time.Minute))
		bs := v.barriers(2)
		slow := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 2))
		v.gathered(bs[0], 1)
		heal := v.partition(s)
		_, err := bs[0].Await(context.Background())
		require.NoError(t, err)
		for range 40 {
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		heal()
		v.awaits(slow.done, "Await to return")
		require.NoError(t, slow.err)
		require.Equal(t, 1, slow.index)

		slow = await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 2))
		v.gathered(bs[0], 1)
		heal = v.partition(s)
		require.NoError(t, bs[0].Reset(context.Background()))
		for range 40 {
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		heal()
		v.brokenFor(slow)
	})
}

// A request that is applied twice makes two nodes of one party. They count as one.
func TestADuplicatedArrivalCountsOnce(t *testing.T) {
	for _, opts := range [][]zkbarrier.BarrierOption{nil, {zkbarrier.Tolerant()}} {
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
			v.leave(awaitAll(context.Background(), bs...)...)
			v.put(barrierPath+"/parties-3/notes", "")
			_, err := bs[0].Await(context.Background())
			require.ErrorIs(t, err, zksync.ErrBroken, "a child that is nobody's")
		})
	})
}
