package zkrate_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// some uses a limiter in bursts, with pauses between them that differ.
func (m *meter) some(r *rand.Rand) func(context.Context, *zkrate.Limiter) {
	seed, n := r.Uint64(), new(atomic.Uint64)
	return func(ctx context.Context, l *zkrate.Limiter) {
		r := rand.New(rand.NewPCG(seed, n.Add(1)))
		for ctx.Err() == nil {
			some, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(8000))*time.Millisecond)
			m.busy(some, l)
			cancel()
			for range r.IntN(20) {
				if l.Allow() {
					m.event()
				}
			}
			time.Sleep(time.Duration(r.IntN(6000)) * time.Millisecond)
		}
	}
}

// The request is sent again, so this is also a duplicate. A request that is lost is one of the random faults.
func TestAcceptance207EveryLostAnswerKeepsTheLimit(t *testing.T) {
	proving.EveryRequestMeets(t, "reply lost", twoShuffle(0), func(*proving.Env, *zktest.Request) zktest.Verdict {
		return zktest.Verdict{Fate: zktest.LoseReply}
	})
}

// Nothing but its client ends a session at once, so this one does not know of it until it asks: then it has used what its share is by
// then, a token at most.
func TestAcceptance207EveryEndOfASessionAtEveryRequestKeepsTheLimit(t *testing.T) {
	proving.EveryRequestMeets(t, "expired", twoShuffle(1), func(v *proving.Env, q *zktest.Request) zktest.Verdict {
		time.AfterFunc(time.Nanosecond, func() { v.Server.Expire(q.Session) }) // when the request has been applied
		return zktest.Verdict{Fate: zktest.LoseReply}
	})
}

// twoShuffle has two processes take from each other, and leave between: their requests are those of all kinds. more is how many events
// there may be beyond the limit.
func twoShuffle(more int) func(*testing.T, *proving.Env) func(string) {
	return func(t *testing.T, v *proving.Env) func(string) {
		ls := limiters(v, 2, 2, 4)
		return func(name string) {
			m := newMeter()
			during(3*time.Second, m.busy, ls...)
			during(6*time.Second, m.busy, ls[0])
			during(6*time.Second, m.busy, ls[1])
			time.Sleep(65 * time.Second)
			during(12*time.Second, m.busy, ls...)
			m.check(t, 2, 4+more)
			require.GreaterOrEqual(t, m.within(87*time.Second, 92*time.Second), 9, name)
		}
	}
}

// A process whose request to take a part lies in the network for ten seconds has not taken it: meanwhile another one joins, and does.
func TestAcceptance207ATakeThatIsUnderWayCountsForNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, sessions := newMeter(), []*zksync.Session{v.Session(), v.Session(), v.Session(), v.Session()}
		ctx, cancel := context.WithCancel(t.Context())
		join := func(s *zksync.Session) { go m.busy(ctx, zkrate.New(s, path, 100, 10)) }
		for _, s := range sessions[:3] {
			join(s)
		}
		time.Sleep(10 * time.Second)
		calm := v.Server.Intercept(zktest.On(zktest.Multi, path+"/zkrate/shares").Of(sessions[0].ID()).Delay(10 * time.Second))
		second := v.Server.Intercept(zktest.On(zktest.Multi, path+"/zkrate/shares").Of(sessions[1].ID()).Delay(10 * time.Second))
		require.NoError(t, sessions[2].Close())
		time.Sleep(time.Second)
		join(sessions[3])
		time.Sleep(20 * time.Second)
		calm.Remove()
		second.Remove()
		time.Sleep(10 * time.Second)
		cancel()
		m.check(t, 100, 10)
		require.GreaterOrEqual(t, m.within(35*time.Second, 40*time.Second), 95*5)
	})
}

// Six processes on three servers, for two minutes: whatever happens to requests, to sessions and to servers.
func TestAcceptance207RandomFaultsKeepTheLimit(t *testing.T) {
	for seed := range max(proving.Rounds(3), 1) {
		proving.AmongMembers(t, 3, 20*time.Millisecond, func(t *testing.T, e *zktest.Ensemble) {
			r := rand.New(rand.NewPCG(uint64(seed), 9))
			m := newMeter()
			var ls []*zkrate.Limiter
			var sessions []*zksync.Session
			burst := 1 + r.IntN(40)
			for i := range 6 {
				sessions = append(sessions, e.SessionAt(t, i%3, zksync.WithTimeout(10*time.Second)))
				ls = append(ls, zkrate.New(sessions[i], path, 10, burst))
			}
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(uint64(seed), 10))
			calm := e.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
				mu.Lock()
				defer mu.Unlock()
				if fates := []zktest.Fate{zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate}; proving.Counts(q) && dice.IntN(40) == 0 {
					v.Fate = fates[dice.IntN(3)]
					v.Delay = time.Duration(dice.IntN(2)*dice.IntN(3000)) * time.Millisecond
				}
				return v
			})
			ctx, cancel := context.WithCancel(context.Background())
			use := m.some(r)
			go func() {
				for ctx.Err() == nil {
					time.Sleep(time.Duration(r.IntN(20000)) * time.Millisecond)
					id := sessions[r.IntN(len(sessions))].ID()
					switch d := time.Duration(r.IntN(20000)) * time.Millisecond; r.IntN(4) {
					case 0:
						e.Disconnect(id)
					case 1: // often until the session has ended
						time.AfterFunc(d, e.Partition(id))
					case 2:
						if i := r.IntN(3); i != e.Leader() {
							e.ElectLeader(i)
						}
					case 3:
						heal := e.Isolate(r.IntN(3))
						time.Sleep(d)
						heal()
					}
				}
			}()
			during(2*time.Minute, use, ls...)
			cancel()
			calm()
			time.Sleep(time.Minute)
			m.check(t, 10, burst)
			require.Greater(t, len(m.events), 10*20, "it allows something")
			from := time.Since(m.start)
			during(30*time.Second, m.busy, ls...)
			m.check(t, 10, burst)
			require.GreaterOrEqual(t, m.within(from+15*time.Second, from+30*time.Second), 10*15*8/10)
		})
	}
}

// With a limit of 0 there are only the tokens of the burst, which processes take out of the record, and give back when they end.
func TestAcceptance207TokensThatAreGivenBackAreGivenBackOnce(t *testing.T) {
	for seed := range max(proving.Rounds(6), 2) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			r, total := rand.New(rand.NewPCG(uint64(seed), 1)), new(atomic.Int64)
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(uint64(seed), 2))
			v.Server.InterceptFunc(func(q *zktest.Request) (x zktest.Verdict) {
				mu.Lock()
				defer mu.Unlock()
				if proving.Counts(q) && dice.IntN(6) == 0 {
					x.Fate = []zktest.Fate{zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate}[dice.IntN(3)]
					x.Delay = time.Duration(dice.IntN(2)*dice.IntN(9000)) * time.Millisecond
				}
				return x
			})
			var all sync.WaitGroup
			for range 6 {
				r := rand.New(rand.NewPCG(r.Uint64(), 3))
				all.Go(func() {
					for range 4 {
						s := v.Session(zksync.WithTimeout(10 * time.Second))
						l := zkrate.New(s, path, 0, 100)
						for range r.IntN(8) {
							n, d := 1+r.IntN(20), time.Duration(r.IntN(5000))*time.Millisecond
							ctx, cancel := context.WithTimeout(context.Background(), d)
							if n%2 == 0 && l.AllowN(n) || n%2 != 0 && l.WaitN(ctx, n) == nil {
								total.Add(int64(n))
							}
							cancel()
							time.Sleep(d)
						}
						s.Close()
					}
				})
			}
			all.Wait()
			require.LessOrEqual(t, total.Load(), int64(100))
			require.Positive(t, total.Load())
		})
	}
}

// A process ends while a change of its share is under way, whose answer is lost or late: its tokens do not come back twice.
func TestCloseInTheMiddleOfAChangeKeepsTheLimit(t *testing.T) {
	for _, rule := range []func(*zktest.Rule) *zktest.Rule{(*zktest.Rule).LoseReply, func(r *zktest.Rule) *zktest.Rule { return r.Delay(5 * time.Second) }} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			m, s := newMeter(), v.Session()
			a, b := zkrate.New(s, path, 10, 20), zkrate.New(v.Session(), path, 10, 20)
			ctx, cancel := context.WithCancel(t.Context())
			go m.busy(ctx, a)
			time.Sleep(10 * time.Second)
			v.Server.Intercept(rule(zktest.On(zktest.Multi, path+"/zkrate/shares").Of(s.ID())))
			go m.busy(ctx, b)
			time.Sleep(50 * time.Millisecond)
			require.NoError(t, s.Close())
			time.Sleep(40 * time.Second)
			cancel()
			require.GreaterOrEqual(t, m.within(40*time.Second, 50*time.Second), 95)
			for l := zkrate.New(v.Session(), path, 10, 20); l.Allow(); {
				m.event()
			}
			m.check(t, 10, 20)
		})
	}
}
