package recipes_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"
	"time"

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
