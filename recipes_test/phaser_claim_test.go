package recipes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The first who runs the function panics, and gives its claim up. The answer is lost, and what is sent again reaches
// the server when somebody else has made a claim.
func TestAClaimThatIsGivenUpTwiceTakesNobodyElsesAway(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		var calls, running, most atomic.Int32
		onAdvance := zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			if calls.Add(1) == 1 {
				panic("boom")
			}
			time.Sleep(time.Minute)
			return false
		})
		var sessions []*zksync.Session
		var ps []*zkphaser.Phaser
		for range 3 {
			sessions = append(sessions, v.session())
			ps = append(ps, zkphaser.New(sessions[len(ps)], phaserPath, onAdvance))
		}
		for _, p := range ps {
			v.gives(0, p.Register)
		}
		v.gives(0, ps[1].Arrive)
		v.gives(0, ps[2].Arrive)
		v.quiet()
		var struck atomic.Int32
		remove := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session != sessions[0].ID() || calls.Load() == 0 || q.Op != zktest.Delete && q.Op != zktest.Multi {
				return zktest.Verdict{}
			}
			switch struck.Add(1) {
			case 1:
				return zktest.Verdict{Fate: zktest.LoseReply}
			case 2:
				return zktest.Verdict{Delay: 5 * time.Second}
			}
			return zktest.Verdict{}
		})
		first := make(chan any, 1)
		go func() {
			defer func() { first <- recover() }()
			_, _ = ps[0].Arrive(context.Background())
		}()
		var waiters []*phased
		time.Sleep(time.Second)
		for _, p := range ps[1:] {
			waiters = append(waiters, phase(context.Background(), func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) }))
		}
		for _, w := range waiters {
			v.arrives(w, 1)
			require.Zero(t, running.Load(), "the phaser advanced while the function ran")
		}
		require.Equal(t, "boom", <-first)
		require.GreaterOrEqual(t, struck.Load(), int32(2), "the delete was made again")
		require.EqualValues(t, 1, most.Load(), "the function ran twice at once")
		require.EqualValues(t, 2, calls.Load())
		remove()
	})
}

// The first who runs the function panics. Another one claims it after that; the request lies in the queue of a server
// while its session goes elsewhere, where the claim is refused, because somebody else has made one. It is applied when
// that one has given its claim up, and nobody would run the function by it.
func TestAClaimThatLingersInAServerIsNotMadeAfterSomebodyElses(t *testing.T) {
	for name, base := range map[string]*zktest.Rule{
		"that one claims while the request lingers":  nil,
		"that one claims before the version is read": zktest.On(zktest.Exists, phaserPath),
	} {
		t.Run(name, func(t *testing.T) { claimLingers(t, base) })
	}
}

// claimLingers has somebody else claim the action while a request of the phaser's is held: look, or else its claim.
func claimLingers(t *testing.T, look *zktest.Rule) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		var calls atomic.Int32
		second := make(chan struct{})
		onAdvance := zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			switch calls.Add(1) {
			case 1:
				panic("first")
			case 2:
				<-second
				panic("second")
			}
			return false
		})
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		p := zkphaser.New(s, phaserPath, onAdvance)
		other := zkphaser.New(e.SessionAt(t, 2, zksync.WithTimeout(10*time.Second)), phaserPath, onAdvance)
		_, err := other.Register(t.Context())
		require.NoError(t, err)
		require.PanicsWithValue(t, "first", func() { _, _ = other.Arrive(t.Context()) })

		held := e.Intercept(zktest.On(zktest.Create, phaserPath+"/action").Session(s.ID()).Nth(1).Hold().Queued())
		first := held
		if look != nil {
			first = e.Intercept(look.Session(s.ID()).Nth(1).Hold())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := phase(ctx, func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) })
		require.NoError(t, first.WaitHeld(t.Context()))
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = other.AwaitAdvance(ctx, 0)
		}()
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 2, calls.Load(), "the other one runs the function")
		if look != nil {
			first.Release()
			time.Sleep(5 * time.Second)
		}
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond) // a claim is made again, and refused
		comesBack(t, e, s)
		close(second)
		require.Equal(t, "second", <-panicked)
		held.Release()
		<-waits.done
		require.NoError(t, waits.err)
		require.Equal(t, 1, waits.phase)
		require.EqualValues(t, 3, calls.Load())
	})
}
