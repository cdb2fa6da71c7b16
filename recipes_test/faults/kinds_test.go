package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zktest"
)

// kindOfServer is one kind of server that an errand is run on.
type kindOfServer struct {
	name    string
	members int // of an ensemble; 0 for one server
	opts    []zktest.Option
	limits  bool // every other connection is accepted and closed
	lags    bool // the member of one client is behind most of the time
}

func kindsOfServers() []kindOfServer {
	kinds := []kindOfServer{{name: "newest"}}
	for _, version := range []string{"3.4", "3.5", "3.6", "3.8", "3.9"} {
		kinds = append(kinds, kindOfServer{name: version, opts: []zktest.Option{zktest.WithVersion(version)}})
	}
	kinds[0].name = "default"
	tick := zktest.WithTick(time.Second)
	return append(kinds,
		kindOfServer{name: "slow", opts: []zktest.Option{zktest.WithCommitLatency(150 * ms)}},
		kindOfServer{name: "limits connections", limits: true},
		kindOfServer{name: "elects", members: 3, opts: []zktest.Option{tick}},
		kindOfServer{name: "lags", members: 3, opts: []zktest.Option{tick}, lags: true},
	)
}

// behind is for how long a member lags each time.
const behind = 700 * ms

// open starts the servers of a round.
func (k kindOfServer) open(r *round) {
	opts := append(slices.Clone(k.opts), zktest.WithLeftovers())
	if k.members == 0 {
		r.host = zktest.Run(r.t, opts...)
		return
	}
	r.ens = zktest.RunEnsemble(r.t, k.members, opts...)
	r.host = r.ens
	if k.lags {
		r.healing.Go(func() {
			for time.Sleep(ms); !r.ended.Load(); time.Sleep(ms) {
				if r.ens.Leader() == 0 {
					continue
				}
				catchUp := r.ens.Lag(0)
				time.Sleep(behind)
				catchUp()
			}
		})
	}
}

// blow is proving.Blow, and those that only some servers deal.
type blow struct {
	proving.Blow
	refuses bool // a caller may get an error
	final   bool // and its session may end
	more    func(r *round, session int64)
}

// Blows of proving, and of servers that refuse and close.
func blows() []blow {
	var all []blow
	for _, b := range proving.Blows() {
		all = append(all, blow{Blow: b})
	}
	refused := func(name string, code zktest.Code) blow {
		return blow{Blow: proving.Blow{Name: name, Verdict: zktest.Verdict{Fate: zktest.Fail, Code: code}}, refuses: true,
			more: func(r *round, session int64) { r.host.Disconnect(session) }}
	}
	demands := refused("demands-and-closes", zktest.CodeAuthDemanded)
	demands.final = true
	return append(all, refused("unknown-and-close", zktest.CodeUnimplemented), demands,
		blow{Blow: proving.Blow{Name: "too-many-connections"}, more: func(r *round, session int64) {
			r.closed.Store(int64(time.Since(r.began) + shorter))
			r.host.Disconnect(session)
		}})
}

// ofEnsembles are the blows of ensembles alone.
func ofEnsembles() []blow {
	return []blow{
		{Blow: proving.Blow{Name: "election"}, more: func(r *round, _ int64) { r.ens.ElectLeader((r.ens.Leader() + 2) % 3) }},
		{Blow: proving.Blow{Name: "leader-cut-off"}, more: func(r *round, _ int64) {
			if l := r.ens.Leader(); l >= 0 {
				heal := r.ens.Isolate(l)
				time.Sleep(longer)
				heal()
			}
		}},
	}
}

func (k kindOfServer) blows() []blow {
	if k.members == 0 {
		return blows()
	}
	return append(blows(), ofEnsembles()...)
}

// strike does what the blow is about besides its verdict.
func (b blow) strike(r *round, session int64) {
	r.healing.Go(func() {
		time.Sleep(5 * ms) // a held request is still in the server
		switch {
		case b.more != nil:
			b.more(r, session)
		case b.Deadly:
			r.host.Expire(session)
		case b.Cancels:
			for _, h := range []*hand{r.a, r.b} {
				if h.s.ID() == session {
					h.cancel()
				}
			}
		case b.Name == "disconnect":
			r.host.Disconnect(session)
		}
	})
}

// portion is one of how many cases is played, but with "make faults": of all kinds of servers together as many as keep
// the package in its time.
const portion = 40

func TestEveryFaultAtEveryRequestOnEveryKindOfServer(t *testing.T) {
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, e := range errands() {
			for _, k := range kindsOfServers() {
				if !proving.Drawn(t, e.name, k.name) {
					continue
				}
				t.Run(strings.ReplaceAll(e.name+" on "+k.name, " ", "-"), func(t *testing.T) {
					t.Parallel()
					n := e.blown(t, k)
					require.Positive(t, n, "nothing was struck")
					cases.Add(int64(n))
				})
			}
		}
	})
	t.Logf("%d cases", cases.Load())
}

// blown strikes an errand on a kind of server with every blow at every request, or a part of those.
func (e errand) blown(t *testing.T, k kindOfServer) (cases int) {
	made, _ := e.play(t, k, blow{}, 0)
	for range 3 { // by chance some make a request more or less
		again, _ := e.play(t, k, blow{}, 0)
		made = min(made, again)
	}
	require.GreaterOrEqual(t, made, e.least, "the errand was struck as a whole")
	for i, b := range k.blows() {
		for nth := 1; nth <= made && !t.Failed(); nth++ {
			if !proving.Full && (nth*31+i*7+len(e.name)+len(k.name))%portion != 0 {
				continue
			}
			cases++
			t.Run(fmt.Sprintf("%s-at-%d", b.Name, nth), func(t *testing.T) {
				fired := false
				for range 300 { // as above
					if _, fired = e.play(t, k, b, nth); fired || t.Failed() {
						break
					}
				}
				require.True(t, fired, "it struck nothing")
			})
		}
	}
	return cases
}
