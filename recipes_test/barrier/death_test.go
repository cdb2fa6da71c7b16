package barrier_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const dying = 10 * time.Second // the session timeout of whoever dies

// mortal opens a session that kill silences for good, or until heal: the servers hear nothing of it, nor of
// another session of its process.
func mortal(v *proving.Env) (s *zksync.Session, kill func() (heal func())) {
	v.T.Helper()
	if !v.Virtual {
		s = v.Session(zksync.WithTimeout(dying))
		return s, func() func() { return v.Partition(s) }
	}
	var dead atomic.Bool
	s = v.Session(zksync.WithTimeout(dying), zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dead.Load() {
			return nil, net.ErrClosed
		}
		return v.Server.DialContext(ctx, network, address)
	}))
	return s, func() func() {
		dead.Store(true)
		heal := v.Server.Partition(s.ID())
		return func() {
			dead.Store(false)
			heal()
		}
	}
}

// oneDies has four of five parties wait, the victim among them in this place.
func oneDies(v *proving.Env, place int, victim *zksync.Session, opts ...zksync.Option) (dead *awaiting, others []*awaiting, spare []*zkbarrier.Barrier) {
	v.T.Helper()
	spare = barriers(v, 5, opts...)
	for i := range 4 {
		if i == 3 { // the others have looked around by now
			proving.Pause(v.T, v, 2500*time.Millisecond)
		}
		if i == place {
			dead = await(context.Background(), zkbarrier.NewBarrier(victim, proving.BarrierPath, 5, opts...))
		} else {
			others = append(others, await(context.Background(), spare[i]))
		}
		gathered(v, spare[4], i+1)
	}
	return dead, others, spare
}

func TestAcceptance063TheDeathOfAPartyBreaksAStrictBarrierForAllOthers(t *testing.T) {
	proving.Together(t)
	for place := range 4 {
		t.Run(fmt.Sprint("place ", place), func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				victim, kill := mortal(v)
				dead, others, spare := oneDies(v, place, victim)
				start := time.Now()
				heal := kill()
				brokenFor(v, others...)
				// The servers may have heard of it a third of the timeout before; it ends at a tick after that.
				v.Within(start, dying+100*time.Millisecond, "noticing the death")
				broken(v, spare[4], true)
				heal()
				brokenFor(v, dead)
				emptied(v)
				require.NoError(t, spare[0].Reset(context.Background()))
				v.Flush()
				leave(v, awaitAll(context.Background(), spare...)...)
			})
		})
	}
}

// A session that is ended at once, before anybody watches its node, is noticed soon too.
func TestAcceptance063AnEndOfASessionBreaksAStrictBarrierForAllOthers(t *testing.T) {
	proving.Together(t)
	for place := range 4 {
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			for name, ends := range map[string]func(v *proving.Env, s *zksync.Session){
				"expires": func(v *proving.Env, s *zksync.Session) { v.Expire(s) },
				"closes":  func(v *proving.Env, s *zksync.Session) { require.NoError(v.T, s.Close()) },
			} {
				t.Run(fmt.Sprint("place ", place, name, wait), func(t *testing.T) {
					proving.Each(t, func(t *testing.T, v *proving.Env) {
						victim := v.Session()
						dead, others, spare := oneDies(v, place, victim)
						proving.Pause(t, v, wait)
						ends(v, victim)
						start := time.Now() // on real servers an end takes its time
						brokenFor(v, others...)
						v.Within(start, time.Second, "noticing the end")
						v.Awaits(dead.done, "Await to return")
						if name == "closes" {
							require.ErrorIs(t, dead.err, zksync.ErrClosed)
						} else {
							require.ErrorIs(t, dead.err, zksync.ErrBroken)
						}
						broken(v, spare[4], true)
						emptied(v)
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
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				bs := barriers(v, 4)
				s := v.Session()
				dead := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 4))
				gathered(v, bs[0], 1)
				rest := awaitAll(context.Background(), bs[1:1+others]...)
				gathered(v, bs[0], 1+others)
				start := time.Now()
				require.NoError(t, s.Close())
				v.Awaits(dead.done, "Await to return")
				_, err := bs[0].Await(context.Background())
				require.ErrorIs(t, err, zksync.ErrBroken)
				brokenFor(v, rest...)
				v.AtOnce(start, "noticing")
			})
		})
	}
}

// inTime asks once a second.
func inTime(v *proving.Env, cond func() bool) {
	v.T.Helper()
	for start := time.Now(); !cond(); <-time.After(time.Second) {
		require.Less(v.T, time.Since(start), v.Span(time.Minute, v.Patience()))
	}
}

// A request that is applied twice makes two nodes of one party. They count as one.
func TestADuplicatedArrivalCountsOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 3)
		waitingAt(v, bs[0], 0)
		v.Server.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/parties-*/*").Times(2).Duplicate())
		first := await(context.Background(), bs[0])
		gathered(v, bs[1], 1)
		require.Len(t, v.Server.Children(proving.BarrierPath+"/parties-0"), 2)
		second := await(context.Background(), bs[1])
		gathered(v, bs[1], 2)
		require.True(t, first.pending() && second.pending())
		last := await(context.Background(), bs[2])
		leave(v, first, second, last)
		require.Equal(t, []int{2, 1, 0}, []int{first.index, second.index, last.index})
		emptied(v)
		leave(v, awaitAll(context.Background(), bs...)...)
		// A party that gives up takes both of its nodes along.
		v.Server.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/parties-*/*").Times(1).Duplicate())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		emptied(v)
	})
}

// What people do externally on the servers breaks a barrier, or is mended; nobody hangs.
func TestWhatIsDeletedByHandBreaksTheBarrierOrIsMended(t *testing.T) {
	for name, remove := range map[string]func(v *proving.Env){
		"the open node": func(v *proving.Env) { v.Remove(proving.BarrierPath + "/open-0") },
		"a party": func(v *proving.Env) {
			v.Remove(proving.BarrierPath + "/parties-0/" + v.Children(proving.BarrierPath + "/parties-0")[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				bs := barriers(v, 3)
				all := awaitAll(context.Background(), bs[:2]...)
				gathered(v, bs[2], 2)
				remove(v)
				brokenFor(v, all...)
				require.NoError(t, bs[2].Reset(context.Background()))
				v.Flush()
				leave(v, awaitAll(context.Background(), bs...)...)
			})
		})
	}
	t.Run("the directory", func(t *testing.T) {
		proving.Each(t, func(t *testing.T, v *proving.Env) {
			bs := barriers(v, 2)
			require.NoError(t, bs[0].Reset(context.Background())) // makes the nodes
			v.Remove(proving.BarrierPath + "/parties-1")
			leave(v, awaitAll(context.Background(), bs...)...)
			v.Remove(proving.BarrierPath + "/open-2")
			require.NoError(t, bs[0].Reset(context.Background()))
			v.Flush()
			leave(v, awaitAll(context.Background(), bs...)...)
			v.Put(proving.BarrierPath+"/parties-4/notes", "")
			_, err := bs[0].Await(context.Background())
			require.ErrorIs(t, err, zksync.ErrBroken, "a child that is nobody's")
		})
	})
}
