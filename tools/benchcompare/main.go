// Command benchcompare runs benchmarks of this revision and of an older one in turn, and fails if something got worse:
//
//	benchcompare -base v1.2.0 -count 8 -run '^TestCosts$' -bench 'LocalHandover|Requests' ./zksync ./bench
//
// Without -base it takes the newest tag that is reachable. This revision is the working tree, with what is not committed. Each
// benchmark runs so many times, and so does each test of -run, which prints what it has measured as a benchmark does. A time is
// worse if it is more than a tenth longer (and p < 0.05), and a number of requests that depends on chance if it is more than a
// hundredth greater (and p < 0.01). Allocations, and what has a unit that begins with "exact-", may not grow. What the older
// revision does not have is listed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	base := flag.String("base", "", "the older `revision`")
	count := flag.Int("count", 8, "how often each benchmark runs")
	pattern := flag.String("bench", ".", "which benchmarks, as for go test")
	tests := flag.String("run", "^$", "which tests, as for go test")
	length := flag.String("benchtime", "300ms", "as for go test")
	flag.Parse()
	if flag.NArg() == 0 || *count < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	worse, err := compare(ctx, *base, *count, []string{"-test.run=" + *tests, "-test.bench=" + *pattern, "-test.benchtime=" + *length}, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchcompare:", err)
	}
	if worse || err != nil {
		os.Exit(1)
	}
}

// compare reports whether something got worse.
func compare(ctx context.Context, base string, count int, args, packages []string, out io.Writer) (worse bool, err error) {
	if base == "" {
		if base, err = git(ctx, "describe", "--tags", "--abbrev=0"); err != nil {
			fmt.Fprintln(out, "nothing to compare with: no tag is reachable; BASE=REVISION names another revision")
			return false, nil
		}
	}
	revision, err := git(ctx, "rev-parse", "--verify", base+"^{commit}")
	if err != nil {
		return false, err
	}
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "benchcompare-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "old")
	if _, err := git(ctx, "worktree", "add", "--detach", tree, revision); err != nil {
		return false, err
	}
	defer func() {
		_, e := git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)
		err = errors.Join(err, e)
	}()
	older, newer := newSide(tree, filepath.Join(dir, "older")), newSide(root, filepath.Join(dir, "newer"))
	for _, pkg := range packages {
		if err := older.build(ctx, pkg); errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(out, "%s is not in %s\n", pkg, base)
		} else if err != nil {
			return false, err
		}
		if err := newer.build(ctx, pkg); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(out, "comparing with %s (%.12s), each benchmark %d times\n", base, revision, count)
	for turn := range count {
		// Whoever begins has the colder machine: they take turns at that, too.
		for i := range 2 {
			if err := []*side{older, newer}[(turn+i)%2].run(ctx, args); err != nil {
				return false, err
			}
		}
	}
	return judge(older.results, newer.results, out), nil
}

// side is one of the two revisions.
type side struct {
	tree, bin string
	binaries  []binary
	results   results
}

type binary struct{ pkg, path string }

func newSide(tree, bin string) *side { return &side{tree: tree, bin: bin, results: results{}} }

// build compiles the tests of a package. If it is not there, the error is os.ErrNotExist.
func (s *side) build(ctx context.Context, pkg string) error {
	if _, err := os.Stat(filepath.Join(s.tree, pkg)); err != nil {
		return err
	}
	b := binary{pkg, filepath.Join(s.bin, strings.ReplaceAll(filepath.Clean(pkg), string(filepath.Separator), "-"))}
	if _, err := output(ctx, s.tree, "go", "test", "-c", "-o", b.path, pkg); err != nil {
		return err
	}
	if _, err := os.Stat(b.path); err == nil { // a package without tests has no binary
		s.binaries = append(s.binaries, b)
	}
	return nil
}

// run runs all benchmarks once.
func (s *side) run(ctx context.Context, args []string) error {
	for _, b := range s.binaries {
		out, err := output(ctx, filepath.Join(s.tree, b.pkg), b.path, args...)
		if err != nil {
			return err
		}
		if err := s.results.read(b.pkg, out); err != nil {
			return err
		}
	}
	return nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := output(ctx, ".", "git", args...)
	return strings.TrimSpace(string(out)), err
}

// output runs a program in a directory. Its error has what the program printed.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, &out, &errs)
	}
	return out.Bytes(), nil
}
