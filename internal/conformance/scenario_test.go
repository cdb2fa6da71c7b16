package conformance

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// scenario is one story that both servers are told.
type scenario struct {
	name string
	run  func(w *world)
	way  way
	with settings // of its own servers
}

// way says what a scenario needs.
type way int

const (
	alone  way = iota // runs while nobody else does, so that zxids are compared exactly
	shared            // takes its time: runs together with others; zxids are compared by their order
	owning            // restarts the server, so both are its own
)

var scenarios []scenario

// add adds a scenario to the suite. Call it from an init function of the file that holds the scenarios.
func add(name string, run func(w *world)) { addAs(alone, name, run) }

func addAs(how way, name string, run func(w *world)) {
	scenarios = append(scenarios, scenario{name: name, run: run, way: how})
}

// addWith adds a scenario that has servers of its own, with settings.
func addWith(with settings, name string, run func(w *world)) {
	scenarios = append(scenarios, scenario{name: name, run: run, way: owning, with: with})
}

// compared counts what was compared, for the summary.
var compared struct{ scenarios, programs, frames atomic.Int64 }

func TestBothServersAnswerTheSameInEveryScenario(t *testing.T) {
	t.Parallel()
	real, own := startReal(t, settings{}), startOwn(t, settings{})
	names := map[string]bool{}
	for i, s := range scenarios {
		if names[s.name] {
			t.Fatalf("two scenarios are called %q", s.name)
		}
		names[s.name] = true
		base := fmt.Sprintf("/s%03d", i)
		t.Run(strings.ReplaceAll(s.name, "/", "|"), func(t *testing.T) {
			switch s.way {
			case alone:
				both(t, real, own, base, true, s.run)
			case shared:
				t.Parallel()
				both(t, real, own, base, false, s.run)
			case owning:
				t.Parallel()
				both(t, startReal(t, s.with), startOwn(t, s.with), base, true, s.run)
			}
			compared.scenarios.Add(1)
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
