package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// where a party is, as far as anybody outside can tell.
type where int

const (
	outside where = iota
	entering
	inside
	leaving
)

// guest is a party and what the model knows of it.
type guest struct {
	b    *zkbarrier.DoubleBarrier
	s    *zksync.Session
	name string

	is        where
	dead      bool // its session ended while it was inside
	doubtful  bool // its session ended while it was entering: perhaps before it was in
	struck    bool // the servers' answers may not have reached it
	cancelled bool
	cancel    context.CancelFunc
	began     int // instants by the machine's counter: of the call,
	ended     int
	entered   int           // of Enter's return
	stayed    []interval    // its Enter calls
	done      chan struct{} // of the call
}

// interval is a time during which a party may have counted as one that enters. It is open while
// to is 0. since and until are its times by the clock.
type interval struct {
	from, to int
	until    time.Time
	lingers  bool // its node may have stayed for a session timeout
}

// entered is told of the end of Enter. mu is held.
func (m *doubleMachine) entered(g *guest, err error) {
	stay := &g.stayed[len(g.stayed)-1]
	stay.to, stay.until, stay.lingers = g.ended, time.Now(), err != nil && g.struck
	if err != nil {
		g.is = outside
		m.explain(g, "enter", err)
		return
	}
	g.is, g.entered = inside, g.ended
	alive := 0
	together := 0
	for _, o := range m.guests {
		if o.is == inside && !o.dead && !o.doubtful {
			alive++
		}
		if slices.ContainsFunc(o.stayed, func(i interval) bool {
			return i.to == 0 || i.to > stay.from || i.lingers && time.Since(i.until) < 20*time.Second
		}) {
			together++
		}
	}
	if alive > m.n {
		m.wrong = append(m.wrong, fmt.Sprintf("%d of %d are inside, with %s", alive, m.n, g.name))
	}
	if together < m.n {
		m.wrong = append(m.wrong, fmt.Sprintf("%s has entered with %d of %d", g.name, together, m.n))
	}
}

// left is told of the end of Leave. mu is held.
func (m *doubleMachine) left(g *guest, err error) {
	g.is = outside
	if err != nil {
		m.explain(g, "leave", err)
		return
	}
	for _, o := range m.guests {
		if o.is == inside && !o.dead && !o.doubtful && o.entered < g.began && !g.dead && !g.doubtful {
			m.wrong = append(m.wrong, fmt.Sprintf("%s has left before %s", g.name, o.name))
		}
	}
}

// explain notes an error that nothing explains. mu is held.
func (m *doubleMachine) explain(g *guest, op string, err error) {
	switch {
	case g.cancelled && errors.Is(err, context.Canceled):
	case (g.dead || g.doubtful) && errors.Is(err, zksync.ErrSessionExpired):
	case op == "enter" && g.struck && errors.Is(err, zksync.ErrBroken):
	case op == "leave" && m.deaths && errors.Is(err, zksync.ErrBroken):
	default:
		m.wrong = append(m.wrong, fmt.Sprintf("%s of %s: %v", op, g.name, err))
	}
}
