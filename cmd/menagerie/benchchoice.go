package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/bench"
)

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

// countList is a flag value: numbers of clients, separated by commas.
type countList []int

const maxClients = 10_000

func (l *countList) Type() string { return "numbers" }

func (l *countList) String() string {
	texts := make([]string, len(*l))
	for i, n := range *l {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func (l *countList) Set(s string) error {
	var all countList
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n <= 0 || n > maxClients {
			return fmt.Errorf("want whole numbers from 1 to %d, separated by commas, such as 1,8,32", maxClients)
		}
		all = append(all, n)
	}
	*l = all
	return nil
}
