package conformance

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// scenario is one story that both servers are told.
type scenario struct {
	name string
	run  func(w *world)
	way  way
	with settings
	kept string // why the servers differ and are meant to; usually empty
}

// way says what a scenario needs.
type way int

const (
	alone  way = iota // runs while nobody else does, so that zxids are compared exactly
	shared            // takes its time: runs together with others; zxids are compared by their order
	owning            // alone, and it restarts the server or changes the root: on servers that are there for that
	seldom            // like owning, and costs so much that it runs only with the flag -full
)

var full = flag.Bool("full", false, "run the scenarios that are left out otherwise because they start servers again and again")

var scenarios []scenario

// add adds a scenario to the suite. Call it from an init function of the file that holds the scenarios.
func add(name string, run func(w *world)) { addAs(alone, name, run) }

func addAs(how way, name string, run func(w *world)) { addWith(settings{}, how, name, run) }

// addWith adds a scenario that runs on servers with settings.
func addWith(with settings, how way, name string, run func(w *world)) {
	scenarios = append(scenarios, scenario{name: strings.ReplaceAll(name, "/", "|"), run: run, way: how, with: with})
}

// addKept adds a scenario that the two servers answer differently, and says why that is so.
func addKept(name, reason string, run func(w *world)) {
	add(name, run)
	scenarios[len(scenarios)-1].kept = reason
}

// home names the servers that a scenario runs on.
func (s scenario) home() string {
	switch {
	case s.with.reaping != 0:
		return "hasty"
	case s.with.extended:
		return "extended"
	case s.way == owning, s.way == seldom:
		return "own"
	}
	return "plain"
}

// compared counts what was compared, for the summary.
var compared struct{ scenarios, programs, frames atomic.Int64 }

func TestBothServersAnswerTheSameInEveryScenario(t *testing.T) {
	t.Parallel()
	homes := map[string][]scenario{}
	names := map[string]bool{}
	for _, s := range scenarios {
		if names[s.name] {
			t.Fatalf("two scenarios are called %q", s.name)
		}
		names[s.name] = true
		if s.way == seldom && !*full {
			continue
		}
		homes[s.home()] = append(homes[s.home()], s)
	}
	for name, here := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := startPair(t, here[0].with)
			for i, s := range here {
				t.Run(s.name, func(t *testing.T) {
					if s.way == shared {
						t.Parallel()
					}
					base, exact := fmt.Sprintf("/s%03d", i), s.way != shared
					if s.kept != "" {
						left, right := transcript(t, servers.real, base, exact, s.run), transcript(t, servers.own, base, exact, s.run)
						require.NotEmpty(t, difference(left, right), "this difference is gone: %s", s.kept)
						return
					}
					both(t, servers.real, servers.own, base, exact, s.run)
					compared.scenarios.Add(1)
				})
			}
		})
	}
}

// show prints what the real server does even where the other one does the same; it is how to ask the
// real server something.
var show = flag.Bool("show", false, "print the transcripts of equal scenarios, too")

// both runs a scenario on both servers and compares.
func both(t *testing.T, real, own server, base string, exact bool, run func(*world)) {
	t.Helper()
	left := transcript(t, real, base, exact, run)
	right := transcript(t, own, base, exact, run)
	if diff := difference(left, right); diff != "" {
		t.Error(diff)
	}
	if *show {
		t.Log("\n" + strings.Join(left, "\n"))
	}
	for _, line := range left {
		if strings.Contains(line, " ! ") {
			t.Errorf("the scenario did not get to its end: %s", line)
		}
	}
}

// transcript runs a scenario on one server.
func transcript(t testing.TB, srv server, base string, exact bool, run func(*world)) []string {
	t.Helper()
	w := newWorld(t, srv, base, exact)
	defer w.close()
	w.run(run)
	compared.frames.Add(int64(w.frames))
	return w.lines()
}
