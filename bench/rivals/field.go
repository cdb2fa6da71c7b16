package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/bench"
)

// rival is a peer of another project.
type rival struct {
	bench.Peer
	what string // which software it is, with its version
}

// rivals are all there are. Those of this module's own bench, and the herd, are always there.
var rivals = []struct {
	name  string
	start func(context.Context) (*rival, error)
}{
	{"curator", curatorRival},
	{"kazoo", kazooRival},
	{"etcd", etcdRival},
	{"redsync", redsyncRival},
}

// field is who takes part.
type field struct {
	peers  []bench.Peer // the first is this module
	what   []string     // which software the rivals are
	absent []string     // who is not there, and what to install
}

// assemble starts those of the names, or all. Software that is not there is left out. Whoever has started is in the field also
// if there is an error.
func assemble(ctx context.Context, names []string) (*field, error) {
	f := &field{}
	known := []string{"herd"}
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	for i, p := range bench.Peers() {
		known = append(known, p.Name())
		if i == 0 || wanted(p.Name()) { // the first is the reference
			f.peers = append(f.peers, p)
		}
	}
	if wanted("herd") {
		f.peers = append(f.peers, herd())
	}
	for _, r := range rivals {
		known = append(known, r.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return f, fmt.Errorf("no peer %s: there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, r := range rivals {
		if !wanted(r.name) {
			continue
		}
		p, err := r.start(ctx)
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
		if err != nil {
			f.absent = append(f.absent, fmt.Sprintf("%s: %v", r.name, err))
			continue
		}
		f.peers = append(f.peers, p)
		f.what = append(f.what, fmt.Sprintf("%s is %s", r.name, p.what))
	}
	return f, nil
}

func (f *field) close() {
	for _, p := range f.peers {
		_ = p.Close() // it ends all the same
	}
}

// scenariosExist is an error if a name is none of a scenario.
func scenariosExist(names []string) error {
	for _, name := range names {
		if _, ok := bench.ScenarioNamed(name); !ok {
			return fmt.Errorf("no scenario %s: there are %s", name, strings.Join(bench.ScenarioNames(), ", "))
		}
	}
	return nil
}

// part is scenarios that the same peers measure.
type part struct {
	scenarios []bench.Scenario
	peers     []bench.Peer
	rounds    int // at most
}

// tooDeep is how many waiters only the cheapest locks are measured with, and seldom: others would take minutes.
const (
	tooDeep    = 1000
	deepRounds = 2
)

// parts are the scenarios of those names, or all that a rival knows, too, with those numbers of clients that they can have, or the usual ones.
func (f *field) parts(names []string, clients []int) []part {
	usual := part{peers: f.peers, rounds: math.MaxInt}
	deepest := part{peers: f.only("menagerie", "gozk-lock", "floor"), rounds: deepRounds}
	for _, s := range bench.Scenarios {
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		if len(names) == 0 && !slices.ContainsFunc(f.peers[1:], func(p bench.Peer) bool { return p.Knows(s.Name) }) {
			continue
		}
		if len(clients) > 0 {
			s = s.With(clients)
		}
		all := s.Clients
		s.Clients = slices.DeleteFunc(slices.Clone(all), func(n int) bool { return s.Drains && n > tooDeep })
		if len(s.Clients) > 0 {
			usual.scenarios = append(usual.scenarios, s)
		}
		if len(s.Clients) < len(all) {
			s.Clients = slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n <= tooDeep })
			deepest.scenarios = append(deepest.scenarios, s)
		}
	}
	return slices.DeleteFunc([]part{usual, deepest}, func(p part) bool { return len(p.scenarios) == 0 })
}

func (f *field) only(names ...string) (some []bench.Peer) {
	for _, p := range f.peers {
		if slices.Contains(names, p.Name()) {
			some = append(some, p)
		}
	}
	return some
}
