package recipes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The first who runs the function panics, and gives its claim up. The answer is lost, and what is sent again reaches
// the server when somebody else has made a claim.
func TestAClaimThatIsGivenUpTwiceTakesNobodyElsesAway(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		var calls, running, most atomic.Int32
		onAdvance := zkbarrier.WithOnAdvance(func(context.Context, int, int) bool {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			if calls.Add(1) == 1 {
				panic("boom")
			}
			time.Sleep(time.Minute)
			return false
		})
		var sessions []*zksync.Session
		var ps []*zkbarrier.Phaser
		for range 3 {
			sessions = append(sessions, v.session())
			ps = append(ps, zkbarrier.NewPhaser(sessions[len(ps)], phaserPath, onAdvance))
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
