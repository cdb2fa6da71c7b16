package recipes_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// visitor is a party that finds a double barrier of one open, because the host is inside. Each of its requests is held
// until the test lets it go.
type visitor struct {
	v          *env
	host, self *zkbarrier.DoubleBarrier
	inside     bool     // the host is
	call       *attempt // the host's last
	enter      *attempt
	held       chan chan struct{}
}

func (v *env) visitor(host, self *zksync.Session, path string) *visitor {
	g := &visitor{
		v: v, host: zkbarrier.NewDoubleBarrier(host, path, 1), self: zkbarrier.NewDoubleBarrier(self, path, 1),
		held: make(chan chan struct{}, 100),
	}
	g.turn()
	return g
}

// turn has the host enter or leave, unless it waits for the visitor to leave.
func (g *visitor) turn() {
	if g.call != nil && g.call.pending() {
		return
	}
	if g.inside {
		g.call = leaves(g.host)[0]
	} else {
		g.call = enters(g.host)[0]
	}
	g.inside = !g.inside
	g.v.quiet()
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
	case <-time.After(20 * time.Millisecond): // it waits for news
	}
	if turn {
		g.turn()
	}
	pass()
	g.v.quiet()
}

// The host enters and leaves while the visitor looks which round is open.
func TestWhoLooksBetweenTwoRoundsIsNeverLeftOutside(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const steps = 12
		host, self := v.session(), v.session()
		for turns := range 1 << steps {
			if bits.OnesCount(uint(turns)) > 3 {
				continue
			}
			g := v.visitor(host, self, fmt.Sprintf("/doubles/%x", turns))
			stop := v.srv.InterceptFunc(g.hold(self.ID()))
			g.enter = enters(g.self)[0]
			v.quiet()
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
			v.passes(g.enter)
			v.within(start, time.Second, fmt.Sprintf("a visitor of an empty barrier, turns %b", turns))
			require.NoError(t, g.self.Leave(context.Background()))
			v.passes(g.call)
		}
	})
}

// The mark of a round that is over is there again, and nobody will remove it.
func TestTheMarkOfARoundThatIsOverKeepsNobodyForLong(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 2)
		v.round(bs[:2]...)
		v.allPass(enters(bs[:2]...))
		dir, _ := v.srv.Node(doubleParties)
		watches := v.srv.Intercept(zktest.On(zktest.GetData, doublePath+"/open-*").Hold())
		waiting := append(leaves(bs[0]), enters(bs[2])...)
		v.quiet()
		require.Equal(t, 2, watches.Held())
		v.allPass(leaves(bs[1]))
		v.put(fmt.Sprintf("%s/open-%x", doublePath, dir.Stat.Czxid), "")
		watches.Remove()
		watches.Release()
		start := time.Now()
		v.passes(waiting[0])
		v.within(start, lifetime, "a wait for the end of a round that is over")
		v.settled(doubleParties, 1)
		v.within(start, lifetime, "a wait outside for the end of a round that is over")
		v.allPass(append(waiting[1:], enters(bs[1])...))
		v.allPass(leaves(bs[1:]...))
	})
}

// Its answer was lost. It was in time, but by when it counts, one more has come. If both of these withdraw, the first is in alone.
func TestAPartyThatCountsAfterOneTooManyHasComeIsInIfItWasInTime(t *testing.T) {
	for _, opens := range []string{"after it has counted", "while it counts"} {
		t.Run("the round opens "+opens, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				bs := v.doubles(3, 2)
				v.round(bs[:2]...)
				v.round(bs[1:]...)
				first := enters(bs[0])
				v.settled(doubleParties, 1)
				v.strike(1, zktest.LoseReply)
				heal := v.srv.Refuse()
				second := enters(bs[1])
				v.settled(doubleParties, 2)
				opening := v.srv.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Nth(1).Hold())
				third := enters(bs[2])
				v.settled(doubleParties, 3)
				require.Equal(t, 1, opening.Held(), "it has come, and has opened nothing yet")
				if opens == "while it counts" {
					look := v.srv.Intercept(zktest.On(zktest.Exists, doublePath+"/gathering-2").Nth(1).Hold())
					heal()
					v.eventually(func() bool { return look.Held() == 1 }, "it does not count")
					opening.Release()
					v.settled(doubleParties, 2)
					look.Release()
				}
				heal()
				v.allPass(append(first, second...))
				opening.Release()
				v.nonePasses(third)
				require.Len(t, v.children(doubleParties), 2)
				v.allPass(leaves(bs[:2]...))
				v.allPass(append(third, enters(bs[0])...))
				v.allPass(leaves(bs[0], bs[2]))
			})
		})
	}
}

// All who came before it are still there when it counts, so it is no matter that the round has opened.
func TestAPartyThatCountsAndWasOneTooManyForSureComesAgain(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 2)
		v.round(bs[:2]...)
		v.round(bs[1:]...)
		opening := v.srv.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Nth(1).Hold())
		in := append(enters(bs[0]), enters(bs[1])...)
		v.settled(doubleParties, 2)
		v.strike(1, zktest.LoseReply)
		heal := v.srv.Refuse()
		late := enters(bs[2])
		v.settled(doubleParties, 3)
		opening.Release()
		v.allPass(in)
		heal()
		v.nonePasses(late)
		require.Len(t, v.children(doubleParties), 2)
		v.allPass(leaves(bs[:2]...))
		v.allPass(append(late, enters(bs[0])...))
		v.allPass(leaves(bs[0], bs[2]))
	})
}

// Who may not write to the directory is not told how many there are, and always counts later.
func TestPartiesThatMayNotWriteDataAreInInTheOrderOfArrival(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		acl := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)
		var bs []*zkbarrier.DoubleBarrier
		for range 3 {
			bs = append(bs, zkbarrier.NewDoubleBarrier(v.session(zksync.WithACL(acl...)), doublePath, 2))
		}
		v.round(bs[:2]...)
		v.round(bs[1:]...)
		counts := v.srv.Intercept(zktest.On(zktest.Exists, doubleParties).Times(3).Hold())
		early := append(enters(bs[0]), enters(bs[1])...)
		v.settled(doubleParties, 2)
		in := v.children(doubleParties)
		late := enters(bs[2])
		v.settled(doubleParties, 3)
		require.Equal(t, 3, counts.Held())
		opening := v.srv.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Hold())
		counts.Release()
		v.quiet()
		opening.Remove() // not before all have counted: if the third has gone, the second may not be able to tell who was in time
		v.allPass(early)
		v.nonePasses(late)
		require.ElementsMatch(t, in, v.children(doubleParties), "nobody had to come again")
		v.allPass(leaves(bs[:2]...))
		v.allPass(append(late, enters(bs[0])...))
		v.allPass(leaves(bs[0], bs[2]))
	})
}
