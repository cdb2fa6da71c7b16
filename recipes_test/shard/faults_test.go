package zkshard_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zktest"
)

// blow is what happens to one request for the record of an ensemble, or to the process that made it.
type blow struct {
	name    string
	verdict zktest.Verdict
	then    func(w *storm, srv *zktest.Server, session int64)
}

func kill(w *storm, _ *zktest.Server, session int64) {
	if p := w.of(session); p != nil {
		p.kill()
	}
}

func cut(_ *storm, srv *zktest.Server, session int64) {
	time.AfterFunc(40*time.Second, srv.Partition(session))
}

var blows = []blow{
	{name: "lose-request", verdict: zktest.Verdict{Fate: zktest.LoseRequest}},
	{name: "lose-reply", verdict: zktest.Verdict{Fate: zktest.LoseReply}},
	{name: "duplicate", verdict: zktest.Verdict{Fate: zktest.Duplicate}},
	{name: "hold", verdict: zktest.Verdict{Delay: 20 * time.Second}},
	{name: "cut-before", verdict: zktest.Verdict{Delay: 10 * time.Millisecond}, then: cut},
	{name: "cut-after", then: cut},
	{name: "kill-before", verdict: zktest.Verdict{Delay: 10 * time.Millisecond}, then: kill},
	{name: "kill-after", then: kill},
	{name: "disconnect", then: func(_ *storm, srv *zktest.Server, session int64) {
		for _, live := range srv.Sessions() {
			_ = live.ID == session && srv.Disconnect(session)
		}
	}},
}

// of is the process of a session; nil during its Connect.
func (w *storm) of(session int64) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.all {
		for _, s := range p.s.All() {
			if s.ID() == session {
				return p
			}
		}
	}
	return nil
}

// meets has the nth request for a record, of all ensembles, meet the blow.
func (w *storm) meets(b blow, nth int) (struck func() bool) {
	var n atomic.Int32
	for _, srv := range w.srvs {
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if !strings.HasPrefix(q.Path, zkshard.Path) || int(n.Add(1)) != nth {
				return zktest.Verdict{}
			}
			if b.then != nil {
				id := q.Session
				time.AfterFunc(5*time.Millisecond, func() { b.then(w, srv, id) })
			}
			return b.verdict
		})
	}
	return func() bool { return int(n.Load()) >= nth }
}

// The whole rollout, with every fault at every request for the records: it ends, and no name has two holders.
func TestAcceptance216EveryFaultAtEveryRequestOfARollout(t *testing.T) {
	inProcess(t)
	for _, b := range blows {
		t.Run(b.name, func(t *testing.T) {
			last := 0
			for nth, more := 1, true; more && nth < 300 && !t.Failed(); nth++ {
				if !proving.Third(t, nth) || !proving.Third(t, nth, "again") {
					continue
				}
				t.Run(fmt.Sprint(nth), func(t *testing.T) {
					playStorm(t, uint64(nth), func(w *storm) {
						struck := w.meets(b, nth)
						slots := make([]*process, 2)
						for _, step := range []struct {
							kind string
							c    config
						}{{"old", config{"a b", ""}}, {"moving", config{"b c", "a b"}}, {"new", config{"b c", ""}}} {
							w.replace(step.kind, step.c, slots)
						}
						more, last = struck(), nth
					})
				})
			}
			if !testing.Short() {
				require.Greater(t, last, 20, "the whole rollout was struck")
			}
		})
	}
}

// replace is a rollout without pauses. A process that was killed meanwhile is started once more.
func (w *storm) replace(kind string, c config, slots []*process) {
	for i, p := range slots {
		if p != nil {
			w.gone(p)
			p.end()
		}
		slots[i] = w.start(context.Background(), kind, c, 20)
		require.NotNil(w.t, slots[i], c)
	}
	pause(context.Background(), 6*time.Second)
	for i, p := range slots {
		w.o.mu.Lock()
		killed := p.killed
		w.o.mu.Unlock()
		if killed {
			slots[i] = w.start(context.Background(), kind, c, 20)
			require.NotNil(w.t, slots[i], c)
		}
	}
}
