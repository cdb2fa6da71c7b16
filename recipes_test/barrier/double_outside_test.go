package barrier_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// visitor is a party that finds a double barrier of one open, because the host is inside. Each of its requests is held
// until the test lets it go.
type visitor struct {
	v          *proving.Env
	host, self *zkbarrier.DoubleBarrier
	inside     bool             // the host is
	call       *proving.Attempt // the host's last
	enter      *proving.Attempt
	held       chan chan struct{}
}

func newVisitor(v *proving.Env, host, self *zksync.Session, path string) *visitor {
	g := &visitor{
		v: v, host: zkbarrier.NewDoubleBarrier(host, path, 1), self: zkbarrier.NewDoubleBarrier(self, path, 1),
		held: make(chan chan struct{}, 100),
	}
	g.turn()
	return g
}

// turn has the host enter or leave, unless it waits for the visitor to leave.
func (g *visitor) turn() {
	if g.call != nil && g.call.Pending() {
		return
	}
	if g.inside {
		g.call = leaves(g.host)[0]
	} else {
		g.call = enters(g.host)[0]
	}
	g.inside = !g.inside
	g.v.Quiet()
}

// hold is an interceptor.
func (g *visitor) hold(id int64) func(*zktest.Request) zktest.Verdict {
	return func(q *zktest.Request) zktest.Verdict {
		if q.Session != id || q.Op == zktest.Ping || q.Op == zktest.Sync {
			return zktest.Verdict{}
		}
		c := make(chan struct{})
		g.held <- c
		return zktest.Verdict{Hold: c}
	}
}

// step waits for the visitor's next request, if it makes one, and has the host turn before it is served.
func (g *visitor) step(turn bool) {
	pass := func() {}
	select {
	case c := <-g.held:
		pass = func() { close(c) }
	case <-time.After(20 * time.Millisecond): // it waits for an event
	}
	if turn {
		g.turn()
	}
	pass()
	g.v.Quiet()
}

// The host enters and leaves while the visitor looks which round is open.
func TestWhoLooksBetweenTwoRoundsIsNeverLeftOutside(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const steps = 12
		host, self := v.Session(), v.Session()
		for turns := range 1 << steps {
			if bits.OnesCount(uint(turns)) > 3 {
				continue
			}
			g := newVisitor(v, host, self, fmt.Sprintf("/doubles/%x", turns))
			stop := v.Server.InterceptFunc(g.hold(self.ID()))
			g.enter = enters(g.self)[0]
			v.Quiet()
			for i := range steps {
				g.step(turns>>i&1 == 1)
			}
			stop()
			for len(g.held) > 0 {
				g.step(false)
			}
			if g.inside {
				g.turn()
			}
			start := time.Now()
			v.Passes(g.enter)
			v.Within(start, time.Second, fmt.Sprintf("a visitor of an empty barrier, turns %b", turns))
			require.NoError(t, g.self.Leave(context.Background()))
			v.Passes(g.call)
		}
	})
}

// The mark of a round that is over is there again, and nobody will remove it.
func TestTheMarkOfARoundThatIsOverKeepsNobodyForLong(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 2)
		round(v, bs[:2]...)
		allPass(v, enters(bs[:2]...))
		dir, _ := v.Server.Node(doubleParties)
		watches := v.Server.Intercept(zktest.On(zktest.GetData, doublePath+"/open-*").Hold())
		waiting := append(leaves(bs[0]), enters(bs[2])...)
		v.Quiet()
		require.Equal(t, 2, watches.Held())
		allPass(v, leaves(bs[1]))
		v.Put(fmt.Sprintf("%s/open-%x", doublePath, dir.Stat.Czxid), "")
		watches.Remove()
		watches.Release()
		start := time.Now()
		v.Passes(waiting[0])
		v.Within(start, proving.Lifetime, "a wait for the end of a round that is over")
		v.Settled(doubleParties, 1)
		v.Within(start, proving.Lifetime, "a wait outside for the end of a round that is over")
		allPass(v, append(waiting[1:], enters(bs[1])...))
		allPass(v, leaves(bs[1:]...))
	})
}

// Its answer was lost. It was in time, but by when it counts, one more has come. If both of these withdraw, the first is in alone.
func TestAPartyThatCountsAfterOneTooManyHasComeIsInIfItWasInTime(t *testing.T) {
	for _, opens := range []string{"after it has counted", "while it counts"} {
		t.Run("the round opens "+opens, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				bs := doubles(v, 3, 2)
				round(v, bs[:2]...)
				round(v, bs[1:]...)
				first := enters(bs[0])
				v.Settled(doubleParties, 1)
				v.Strike(1, zktest.LoseReply)
				heal := v.Server.Refuse()
				second := enters(bs[1])
				v.Settled(doubleParties, 2)
				opening := v.Server.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Nth(1).Hold())
				third := enters(bs[2])
				v.Settled(doubleParties, 3)
				require.Equal(t, 1, opening.Held(), "it has come, and has opened nothing yet")
				if opens == "while it counts" {
					look := v.Server.Intercept(zktest.On(zktest.Exists, doublePath+"/gathering-2").Nth(1).Hold())
					heal()
					v.Eventually(func() bool { return look.Held() == 1 }, "it does not count")
					opening.Release()
					v.Settled(doubleParties, 2)
					look.Release()
				}
				heal()
				allPass(v, append(first, second...))
				opening.Release()
				nonePasses(v, third)
				require.Len(t, v.Children(doubleParties), 2)
				allPass(v, leaves(bs[:2]...))
				allPass(v, append(third, enters(bs[0])...))
				allPass(v, leaves(bs[0], bs[2]))
			})
		})
	}
}

// All who came before it are still there when it counts, so it is no matter that the round has opened.
func TestAPartyThatCountsAndWasOneTooManyForSureComesAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 2)
		round(v, bs[:2]...)
		round(v, bs[1:]...)
		opening := v.Server.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Nth(1).Hold())
		in := append(enters(bs[0]), enters(bs[1])...)
		v.Settled(doubleParties, 2)
		v.Strike(1, zktest.LoseReply)
		heal := v.Server.Refuse()
		late := enters(bs[2])
		v.Settled(doubleParties, 3)
		opening.Release()
		allPass(v, in)
		heal()
		nonePasses(v, late)
		require.Len(t, v.Children(doubleParties), 2)
		allPass(v, leaves(bs[:2]...))
		allPass(v, append(late, enters(bs[0])...))
		allPass(v, leaves(bs[0], bs[2]))
	})
}
