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

// shuffle is what three processes do that take from each other all the time: their requests are those of all kinds.
func shuffle(m *meter, ls []*zkrate.Limiter) {
	during(5*time.Second, m.busy, ls...)
	during(10*time.Second, m.busy, ls[0])
	during(10*time.Second, m.busy, ls[1], ls[2])
	time.Sleep(70 * time.Second)
	during(5*time.Second, m.busy, ls...)
}

func TestAcceptance208EveryFaultOfEveryRequestKeepsTheLimit(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ls := limiters(v, 3, 5, 10)
		return func(name string) {
			m := newMeter()
			shuffle(m, ls)
			m.check(t, 5, 10)
			require.GreaterOrEqual(t, m.within(95*time.Second, 100*time.Second), 23, name)
		}
	})
}

func TestAcceptance208EveryEndOfASessionAtEveryRequestKeepsTheLimit(t *testing.T) {
	for what, happen := range map[string]func(*proving.Env, int64){"disconnected": proving.Disconnects, "expired": proving.Expires} {
		proving.EveryTrouble(t, what, happen, func(t *testing.T, v *proving.Env) func(string, func()) {
			ls := limiters(v, 3, 5, 10)
			return func(name string, calm func()) {
				m := newMeter()
				shuffle(m, ls)
				calm()
				during(20*time.Second, m.busy, ls...)
				// Nothing but its client ends a session at once, so this one does not know of it until it asks: then it has used
				// what its share is by then.
				m.check(t, 5, 10+map[string]int{"expired": 1}[what])
				require.GreaterOrEqual(t, m.within(110*time.Second, 120*time.Second), 46, name)
			}
		})
	}
}

// A process whose request to take a part lies in the network for ten seconds has not taken it: meanwhile another one joins, and does.
func TestAcceptance208ATakeThatIsUnderWayCountsForNothing(t *testing.T) {
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

// Ten processes on three servers, for three minutes: whatever happens to requests, to sessions and to servers.
func TestAcceptance208RandomFaultsKeepTheLimit(t *testing.T) {
	for seed := range max(proving.Rounds(10), 2) {
		proving.AmongMembers(t, 3, 20*time.Millisecond, func(t *testing.T, e *zktest.Ensemble) {
			r := rand.New(rand.NewPCG(uint64(seed), 9))
			m := newMeter()
			var ls []*zkrate.Limiter
			var sessions []*zksync.Session
			burst := 1 + r.IntN(40)
			for i := range 10 {
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
			during(3*time.Minute, use, ls...)
			cancel()
			calm()
			time.Sleep(time.Minute)
			m.check(t, 10, burst)
			require.Greater(t, len(m.events), 10*30, "it allows something")
			from := time.Since(m.start)
			during(time.Minute, m.busy, ls...)
			m.check(t, 10, burst)
			require.GreaterOrEqual(t, m.within(from+30*time.Second, from+time.Minute), 10*30*8/10)
		})
	}
}
