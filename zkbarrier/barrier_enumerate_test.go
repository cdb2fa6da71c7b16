package zkbarrier

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// setting is one kind of barrier.
type setting struct {
	name   string
	action time.Duration // how long it takes; 0 for no action
}

var settings = []setting{
	{name: "strict"},
	{name: "strict with action", action: 300 * time.Millisecond},
	{name: "strict with long action", action: 3 * time.Second},
}

// scene is three sessions at one barrier of three.
type scene struct {
	srv     *zktest.Server
	s       []*zksync.Session
	bs      []*Barrier
	book    *ledger
	cancels []context.CancelFunc
	stop    func() // ends the faults
	struck  atomic.Int32
}

func newScene(t testing.TB, how setting) *scene {
	sc := &scene{srv: zktest.Run(t), stop: func() {}}
	var opts []zksync.Option
	if how.action > 0 {
		opts = append(opts, WithAction(func(ctx context.Context) error { return sc.book.action(how.action)(ctx) }))
	}
	for range 3 {
		s := sc.srv.Session(t, zksync.WithTimeout(10*time.Second))
		sc.s = append(sc.s, s)
		sc.bs = append(sc.bs, NewBarrier(s, weather.TestPath, 3, opts...))
	}
	sc.book = newLedger(t, sc.srv, sc.bs[0])
	return sc
}

// index is the party whose session it is.
func (sc *scene) index(session int64) int {
	for i, s := range sc.s {
		if s.ID() == session {
			return i
		}
	}
	return -1
}

// blow is what befalls a request. It strikes in the middle of the call, so it does what it does behind it.
type blow struct {
	name   string
	strike func(sc *scene, q *zktest.Request) zktest.Verdict
}

func fateOf(v zktest.Verdict) func(*scene, *zktest.Request) zktest.Verdict {
	return func(*scene, *zktest.Request) zktest.Verdict { return v }
}

func behind(d time.Duration, f func(sc *scene, session int64)) func(*scene, *zktest.Request) zktest.Verdict {
	return func(sc *scene, q *zktest.Request) zktest.Verdict {
		id := q.Session
		time.AfterFunc(d, func() { f(sc, id) })
		return zktest.Verdict{Delay: time.Millisecond}
	}
}

func cancelParty(sc *scene, id int64) {
	if i := sc.index(id); i >= 0 {
		sc.cancels[i]()
	}
}

var blows = []blow{
	{"lose request", fateOf(zktest.Verdict{Fate: zktest.LoseRequest})},
	{"lose reply", fateOf(zktest.Verdict{Fate: zktest.LoseReply})},
	{"duplicate", fateOf(zktest.Verdict{Fate: zktest.Duplicate})},
	{"system error", fateOf(zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeMarshalling})},
	{"hold", fateOf(zktest.Verdict{Delay: 4 * time.Second})},
	{"hold and lose reply", fateOf(zktest.Verdict{Delay: 4 * time.Second, Fate: zktest.LoseReply})},
	{"disconnect before", behind(0, func(sc *scene, id int64) { sc.srv.Disconnect(id) })},
	{"disconnect behind", behind(2*time.Millisecond, func(sc *scene, id int64) { sc.srv.Disconnect(id) })},
	{"expire before", behind(0, func(sc *scene, id int64) { sc.srv.Expire(id) })},
	{"expire behind", behind(2*time.Millisecond, func(sc *scene, id int64) { sc.srv.Expire(id) })},
	{"partition for long", behind(0, func(sc *scene, id int64) { time.AfterFunc(15*time.Second, sc.srv.Partition(id)) })},
	{"no replies for long", behind(0, func(sc *scene, id int64) { time.AfterFunc(15*time.Second, sc.srv.DropReplies(id)) })},
	{"cancel before", behind(0, cancelParty)},
	{"cancel behind", behind(2*time.Millisecond, cancelParty)},
}

// lay has the nth request from now on struck.
func (sc *scene) lay(nth int, b blow) {
	sc.stop = sc.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !proving.Counts(q) || int(sc.struck.Add(1)) != nth {
			return zktest.Verdict{}
		}
		return b.strike(sc, q)
	})
}

// play has three parties meet. If others still wait, a party that gave up had not come yet: it comes again.
func (sc *scene) play(t testing.TB, name string, gap time.Duration) {
	calls := make([]*entry, len(sc.bs))
	sc.cancels = make([]context.CancelFunc, len(sc.bs))
	for i := range sc.cancels {
		sc.cancels[i] = func() {} // it has not come yet
	}
	for i, b := range sc.bs {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		sc.cancels[i] = cancel
		calls[i] = sc.book.start(ctx, b)
		time.Sleep(gap)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	sc.book.check(name)
	if sc.book.pending() > 0 { // asked once: the first to come again may let the others go
		for i, b := range sc.bs {
			if _, err := sc.book.result(calls[i]); err != nil {
				calls = append(calls, sc.book.start(context.Background(), b))
			}
		}
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
	for _, c := range calls {
		done, _ := sc.book.result(c)
		require.True(t, done, "%s: somebody still waits", name)
	}
	sc.book.check(name)
}

// again checks that nothing is left behind and that the next generation works.
func (sc *scene) again(t testing.TB, name string) {
	sc.stop()
	ctx := context.Background()
	broken, err := sc.bs[0].Broken(ctx)
	require.NoError(t, err, name)
	waiting, err := sc.bs[1].Waiting(ctx)
	require.NoError(t, err, name)
	require.Zero(t, waiting, name)
	if broken {
		require.NoError(t, sc.bs[1].Reset(ctx), name)
	}
	for range 2 {
		var calls []*entry
		for _, b := range sc.bs {
			calls = append(calls, sc.book.start(ctx, b))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for _, c := range calls {
			done, err := sc.book.result(c)
			require.True(t, done, "%s: the next generation", name)
			require.NoError(t, err, "%s: the next generation", name)
		}
		time.Sleep(10 * time.Second)
		sc.book.check(name)
	}
	sc.clean(t, name)
}

// clean checks that of all generations nothing is left but their records, and the open one.
func (sc *scene) clean(t testing.TB, name string) {
	dirs := 0
	for _, n := range sc.srv.Children(weather.TestPath) {
		require.Empty(t, sc.srv.Children(weather.TestPath+"/"+n), "%s: %s", name, n)
		var g int64
		if _, err := fmt.Sscanf(n, "parties-%d", &g); err == nil {
			dirs++
		}
	}
	require.Equal(t, 1, dirs, "%s: directories of past generations: %v", name, sc.srv.Children(weather.TestPath))
}

func TestEveryFaultAtEveryRequestLeavesTheBarrierSound(t *testing.T) {
	var struck atomic.Int32
	t.Cleanup(func() { require.NotZero(t, struck.Load()) })
	for _, how := range settings {
		for _, gap := range []time.Duration{0, 1500 * time.Millisecond} {
			t.Run(fmt.Sprint(how.name, " ", gap), func(t *testing.T) {
				t.Parallel()
				for _, b := range blows {
					for nth, more := 1, true; more && !t.Failed(); nth++ {
						if proving.Drawn(t, b.name, nth) {
							if more = meetUnder(t, how, gap, nth, b); more {
								struck.Add(1)
							}
						}
					}
				}
			})
		}
	}
}

// meetUnder has a blow strike the nth request of a meeting, and reports whether there were so many.
func meetUnder(t *testing.T, how setting, gap time.Duration, nth int, b blow) (struck bool) {
	name := fmt.Sprintf("%s at request %d", b.name, nth)
	synctest.Test(t, func(t *testing.T) {
		sc := newScene(t, how)
		defer func() {
			if t.Failed() {
				t.Log(sc.book.story())
			}
		}()
		sc.lay(nth, b)
		sc.play(t, name, gap)
		struck = int(sc.struck.Load()) >= nth
		sc.again(t, name)
	})
	return struck
}
