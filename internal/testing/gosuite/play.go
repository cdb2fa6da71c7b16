package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// work is one suite in a run.
type work struct {
	*suite
	root, dir string
	tests     []string // those that are compiled
	left      []string // benchmarks

	ran, passed int
}

var (
	identifiers = regexp.MustCompile(`\w+`)
	finished    = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)`)
)

// prepare writes the rewritten tests and the overlay that puts them beside the package.
func (w *work) prepare() error {
	if err := w.parse(); err != nil {
		return err
	}
	if err := w.sort(); err != nil {
		return err
	}
	files, err := w.write(w.reachable(w.tests))
	if err != nil {
		return err
	}
	if err := w.stale(); err != nil {
		return err
	}
	overlay := map[string]string{}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		at := filepath.Join(w.dir, name)
		if err := os.WriteFile(at, text, 0o644); err != nil {
			return err
		}
		overlay[filepath.Join(w.root, "internal", "testing", "gosuite", w.name, name)] = at
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "overlay.json"), list, 0o644)
}

// sort divides the functions into tests and benchmarks, and checks that the dropped tests are there and cannot be compiled.
func (w *work) sort() error {
	dropped := map[string]verdict{}
	for _, v := range w.dropped {
		dropped[v.test] = v
	}
	for _, d := range w.decls {
		name := d.names[0]
		v, drop := dropped[name]
		switch {
		case strings.HasPrefix(name, "Benchmark"):
			w.left = append(w.left, name)
		case !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example"):
		case !drop:
			w.tests = append(w.tests, name)
		case !slices.ContainsFunc(w.reachable([]string{name}), func(d *decl) bool { return d.uses[v.uses] }):
			return fmt.Errorf("%s: %s is dropped because of %s, and does not use it any more", w.name, name, v.uses)
		default:
			delete(dropped, name)
		}
	}
	for name := range dropped {
		return fmt.Errorf("%s: %s is dropped, and does not exist any more", w.name, name)
	}
	for _, v := range w.differs {
		if !slices.Contains(w.tests, v.test) {
			return fmt.Errorf("%s: %s is said to differ, and does not exist any more", w.name, v.test)
		}
	}
	return nil
}

// stale finds a change for which there was no use.
func (w *work) stale() error {
	for _, c := range w.changes {
		if !w.used[c.in+c.old] {
			return fmt.Errorf("%s: %s is changed, and does not exist any more", w.name, c.in)
		}
	}
	for name := range w.bodies {
		if !w.used[name] {
			return fmt.Errorf("%s: %s is replaced, and nothing uses it any more", w.name, name)
		}
	}
	return nil
}

// play runs the suite in one session and in three at the same time, and reports whether all was as expected.
func (w *work) play() (good bool) {
	var all sync.WaitGroup
	results := []*result{{sessions: 1}, {sessions: 3}}
	for _, r := range results {
		all.Go(func() { r.good = w.in(r) })
	}
	all.Wait()
	good = true
	for _, r := range results {
		fmt.Print(r.report.String())
		good = good && r.good
		w.ran, w.passed = w.ran+r.ran, w.passed+r.passed
	}
	w.explain()
	return good
}

// result is what came of a suite with a number of sessions.
type result struct {
	sessions    int
	report      bytes.Buffer
	good        bool // all was as expected
	ran, passed int
}

// explain prints the reasons.
func (w *work) explain() {
	for _, v := range w.dropped {
		fmt.Printf("  %s is dropped: %s\n", v.test, v.why)
	}
	for _, v := range w.differs {
		where := ""
		if v.only != 0 {
			where = fmt.Sprintf(" with %d sessions", v.only)
		}
		fmt.Printf("  %s differs%s: %s\n", v.test, where, v.why)
	}
	for _, c := range w.changes {
		fmt.Printf("  %s has %q in place of %q: %s\n", c.in, c.new, c.old, c.why)
	}
	for name := range w.bodies {
		fmt.Printf("  %s is replaced: it calls the runtime\n", name)
	}
}

// in runs the suite in r.sessions, and reports whether all was as expected.
func (w *work) in(r *result) bool {
	start := time.Now()
	program, err := w.compile(r)
	if err != nil {
		fmt.Fprintf(&r.report, "%s: %v\n", w.name, err)
		return false
	}
	differ, good := w.differing(program, r)
	out, err := w.execute(program, "-test.v", "-test.skip", "^("+strings.Join(append(differ, "none"), "|")+")$")
	for _, m := range finished.FindAllStringSubmatch(string(out), -1) {
		if m[1] == "PASS" {
			r.passed++
		}
	}
	r.ran = len(w.tests) - len(differ)
	if err != nil || r.passed != r.ran {
		good = false
		fmt.Fprintf(&r.report, "%s in %d sessions: %v\n%s", w.name, r.sessions, err, out)
	}
	fmt.Fprintf(&r.report, "%s, sessions: %d: %d run, %d passed, %d differ on purpose, %d dropped, %d benchmarks left out (%.1fs)\n", w.name,
		r.sessions, r.ran, r.passed, len(differ), len(w.dropped), len(w.left), time.Since(start).Seconds())
	return good
}

// compile makes the program of the tests.
func (w *work) compile(r *result) (program string, err error) {
	program = filepath.Join(w.dir, fmt.Sprintf("in%d", r.sessions))
	args := []string{"test", "-c", "-vet=off", "-o", program, "-overlay", filepath.Join(w.dir, "overlay.json")}
	if r.sessions == 3 {
		args = append(args, "-tags", "three")
	}
	cmd := exec.Command("go", append(args, "./internal/testing/gosuite/"+w.name)...)
	cmd.Dir = w.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// differing runs the tests that differ, each alone, and returns them. They must fail.
func (w *work) differing(program string, r *result) (names []string, good bool) {
	good = true
	for _, v := range w.differs {
		if v.only != 0 && v.only != r.sessions {
			continue
		}
		names = append(names, v.test)
		if v.luck {
			continue
		}
		if out, err := w.execute(program, "-test.run", "^"+v.test+"$"); err == nil {
			good = false
			fmt.Fprintf(&r.report, "%s: %s is said to differ, and passes in %d sessions\n%s", w.name, v.test, r.sessions, out)
		}
	}
	return names, good
}

func (w *work) execute(program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, append([]string{"-test.short", "-test.timeout=5m"}, args...)...)
	cmd.Dir = w.dir
	return cmd.CombinedOutput()
}
