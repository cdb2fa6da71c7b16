package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/bench"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	scenarios, peers []string
	clients          countList
	duration         positiveDuration
	rounds           count
	out              string
	asJSON, list     bool
}

// everything is the name that stands for all scenarios.
const everything = "all"

// chosenPeers are those that the flags name, in the order in which they are shown.
func (o benchOptions) chosenPeers() ([]bench.Peer, error) {
	var chosen []bench.Peer
	var known []string
	for _, p := range bench.Peers() {
		known = append(known, p.Name())
		if len(o.peers) == 0 || slices.Contains(o.peers, p.Name()) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range o.peers {
		if !slices.Contains(known, name) {
			return nil, usage("unknown peer %q, want one of %s", shorten(name), strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// chosenScenarios are those that the flags name, with the numbers of clients that the flags name. If a scenario was named,
// it must be possible to measure it.
func (o benchOptions) chosenScenarios(peers []bench.Peer, named bool) ([]bench.Scenario, error) {
	for _, name := range o.scenarios {
		if _, ok := bench.ScenarioNamed(name); !ok && name != everything {
			return nil, usage("unknown scenario %q, want %s or one of %s", shorten(name), everything, strings.Join(bench.ScenarioNames(), ", "))
		}
	}
	all := slices.Contains(o.scenarios, everything)
	var chosen []bench.Scenario
	for _, s := range bench.Scenarios {
		if !all && !slices.Contains(o.scenarios, s.Name) {
			continue
		}
		able := slices.ContainsFunc(peers, func(p bench.Peer) bool { return p.Knows(s.Name) })
		if len(o.clients) > 0 {
			s = s.With(o.clients)
		}
		switch {
		case able && len(s.Clients) > 0:
			chosen = append(chosen, s)
		case named && !all && !able:
			return nil, usage("no peer of %s can do the scenario %s", strings.Join(o.peers, ", "), s.Name)
		case named && !all:
			return nil, usage("the scenario %s has %s, so --clients %s leaves nothing to measure", s.Name, clientsOf(s), &o.clients)
		}
	}
	if len(chosen) == 0 {
		return nil, usage("--clients %s leaves nothing to measure", &o.clients)
	}
	return chosen, nil
}

// clientsOf says how many clients a scenario can have.
func clientsOf(s bench.Scenario) string {
	if s.Min == s.Max {
		return bench.Clients(s.Min)
	}
	return fmt.Sprintf("%d to %s", s.Min, bench.Clients(s.Max))
}

// checkOut makes the directory of the report, if there shall be one, and finds out whether it can be written to.
func (o benchOptions) checkOut() error {
	if o.out == "" {
		return nil
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return usage("--out: cannot make the directory: %v", err)
	}
	probe, err := os.CreateTemp(o.out, ".menagerie-bench-*")
	if err != nil {
		return usage("--out: cannot write into the directory: %v", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
