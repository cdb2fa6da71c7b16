// Gosuite runs Go's own tests of package sync, and those of x/sync's semaphore and singleflight, with the types of this module: once with
// all objects in one session, and once with each object in three sessions at three servers.
//
// It takes the tests from GOROOT and the module cache, puts constructors in place of zero values, and compiles them beside the packages of
// internal/testing/gosuite with an overlay: nothing is written into the tree. The file suites.go lists what is changed, what is dropped because it
// cannot be compiled, and what differs on purpose. Gosuite fails if a test fails, and if that list is not true: if a name or a text in
// it does not exist any more, or if a test that differs passes.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gosuite:", err)
		os.Exit(1)
	}
}

// run plays all suites.
func run() error {
	goroot, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if _, err := output("go", "mod", "download", "golang.org/x/sync"); err != nil { // else "go list" knows no directory on a new machine
		return err
	}
	xsync, err := output("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sync")
	if err != nil {
		return err
	}
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-menagerie/menagerie")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gosuite")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	failed, ran, passed, dropped := false, 0, 0, 0
	for _, s := range suites(goroot, xsync) {
		w := work{suite: s, root: root, dir: filepath.Join(dir, s.name)}
		if err := w.prepare(); err != nil {
			return err
		}
		failed = !w.play() || failed
		ran, passed, dropped = ran+w.ran, passed+w.passed, dropped+len(w.dropped)
	}
	fmt.Printf("gosuite: %d run in one session and in three, %d passed, %d dropped\n", ran, passed, dropped)
	if failed {
		return fmt.Errorf("not all is as expected")
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
