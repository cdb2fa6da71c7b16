package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// A program is what so many sessions do, one at a time.
const (
	players = 3
	length  = players * 30
)

// lanes is how many programs are drawn at a time. It is the same everywhere, so that a seed means the same
// programs everywhere.
const lanes = 4

// programWidth is how many programs run at a time, each on a pair of servers of its own: a program waits more than it
// works. Starting more servers for a few programs would cost more than they save.
func programWidth() int {
	if *programs < 200 {
		return 2
	}
	return lanes
}

// programs is how many programs are compared; the default is for every day.
var programs = flag.Int("programs", 48, "compare so many generated programs")

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	rounds := (*programs + lanes - 1) / lanes
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(rounds), "rapid.nofailfile": "true", "rapid.shrinktime": "1ns"} {
		if !given[name] {
			_ = flag.Set(name, value) // the flags of rapid are there, or the build fails
		}
	}
	code := m.Run()
	fmt.Printf("compared: %d scenarios, %d programs, %d frames of each server\n",
		compared.scenarios.Load(), compared.programs.Load(), compared.frames.Load()/2)
	os.Exit(code)
}

// player is one session of a program, on whatever connection it has.
type player struct {
	w    *world
	name string
	c    *client
}

func (p *player) reopen() {
	p.c.close()
	p.c = p.w.join(p.name)
}

// burst sends several requests without waiting for the answers.
func (p *player) burst(all []op) {
	var last int32
	for _, o := range all {
		last = p.c.send(o)
	}
	p.c.await(last)
}

// move takes the session to another connection while the old one is open. What the old one should still hear is
// waited for: a real server that closes it throws away what it has not sent yet.
func (p *player) move() {
	old := p.c
	old.fence()
	p.c = p.w.resume(p.name, old.session, old.seen)
	old.ended()
}

func (p *player) comeBack() {
	p.c.drop()
	p.c = p.w.resume(p.name, p.c.session, p.c.seen)
}

// perform runs a program and looks at everything that it leaves behind.
func perform(steps program) func(w *world) {
	return func(w *world) {
		var all [players]*player
		for i := range all {
			name := string(rune('A' + i))
			all[i] = &player{w: w, name: name, c: w.join(name)}
		}
		all[0].c.all(create("~/a", "", persistent), create("~/b", "", persistent), create("~/a/x", "", persistent), container("~/c", ""))
		for _, s := range steps {
			s.run(all[s.who])
		}
		for _, p := range all {
			p.c.fence()
		}
		root := w.join("R")
		root.do(auth("digest", "root:root"))
		for _, n := range nodes {
			root.all(get(n, false), list2(n, false), getACL(n))
		}
		for _, p := range all {
			p.c.close()
			root.do(list2("~/a", false))
		}
	}
}

// program is a number of steps that is drawn in one go.
type program []step

// GoString is how rapid shows a program.
func (p program) GoString() string {
	var b strings.Builder
	for _, s := range p {
		fmt.Fprintf(&b, "\n    %c %s", 'A'+s.who, s.what)
	}
	return b.String()
}

func drawProgram(t *rapid.T) program {
	p := make(program, length)
	for i := range p {
		p[i] = drawStep(t)
	}
	return p
}

// pair is a real server and ours, for one program at a time.
type pair struct {
	t         testing.TB
	real, own server
}

func startPair(t testing.TB, with settings) *pair {
	return &pair{t: t, real: startReal(t, with), own: startOwn(t, with)}
}

// differ runs a program on both and returns what is different.
func (s *pair) differ(p program) string {
	left := transcript(s.t, s.real, "/p", true, perform(p))
	right := transcript(s.t, s.own, "/p", true, perform(p))
	if last := left[len(left)-1]; strings.Contains(last, " ! ") {
		return "the program did not get to its end:\n" + strings.Join(left[max(0, len(left)-12):], "\n") + difference(left, right)
	}
	return difference(left, right)
}

// TestBothServersAnswerTheSameInGeneratedPrograms compares programs that nobody has thought of. One that
// fails is reduced to the steps that matter.
func TestBothServersAnswerTheSameInGeneratedPrograms(t *testing.T) {
	t.Parallel()
	pairs := make([]*pair, programWidth())
	for i := range pairs {
		pairs[i] = startPair(t, settings{extended: true})
	}
	var failed program
	defer func() {
		if failed != nil {
			failed = reduce(failed, func(p program) bool { return pairs[0].differ(p) != "" })
			t.Logf("the steps that matter:%#v\n%s", failed, pairs[0].differ(failed))
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		drawn := rapid.SliceOfN(rapid.Custom(drawProgram), lanes, lanes).Draw(rt, "programs")
		diffs := make([]string, lanes)
		var lane sync.WaitGroup
		for first, here := range pairs {
			lane.Go(func() {
				for i := first; i < lanes; i += len(pairs) {
					diffs[i] = here.differ(drawn[i])
				}
			})
		}
		lane.Wait()
		compared.programs.Add(lanes)
		for i, diff := range diffs {
			if diff != "" {
				failed = drawn[i]
				rt.Fatalf("the servers differ: %s", diff)
			}
		}
	})
}

// reduce takes steps out of a program for as long as it fails without them: first many at a time, then
// single ones. Rapid could do it too, but would not come to an end in reasonable time: it tries to make
// numbers smaller, which here mean something else each.
func reduce(p program, fails func(program) bool) program {
	for n := len(p) / 2; n > 0; {
		cut := false
		for i := 0; i+n <= len(p); {
			if less := slices.Delete(slices.Clone(p), i, i+n); fails(less) {
				p, cut = less, true
			} else {
				i += n
			}
		}
		if !cut || n > 1 {
			n /= 2
		}
	}
	return p
}
