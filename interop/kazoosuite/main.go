//go:build unix

// Command kazoosuite runs the tests of kazoo, the Python client, against "menagerie serve" and against a real
// server, and compares the two: "make kazoosuite". It fails if a test passes on the real server only, and is not
// among the excused.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

// excused are tests that may pass on a real server only, with the reason. There are none: what "menagerie serve" lacks
// (SASL, reconfig, read-only mode), a standalone server without configuration lacks, too.
var excused = map[string]string{}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kazoosuite:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// run reports whether every test that passes on a real server passes on ours, or is excused.
func run(ctx context.Context) (ok bool, err error) {
	var s suite
	menagerie := flag.String("menagerie", "bin/menagerie", "the `COMMAND` whose serve is tested")
	flag.StringVar(&s.only, "only", "", "only tests that `WORDS` select, as pytest's -k does")
	flag.DurationVar(&s.limit, "limit", time.Minute, "how long a test may take")
	flag.DurationVar(&s.whole, "whole", 20*time.Minute, "how long all tests of one server may take")
	flag.Parse()
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: 1, Tick: 2 * time.Second, MaxSessionTimeout: 40 * time.Second})
	if err != nil {
		return false, err
	}
	defer e.Close()
	address, end, err := serve(ctx, *menagerie)
	if err != nil {
		return false, err
	}
	defer end()
	fmt.Println("kazoo's tests, on a real server and on menagerie serve at the same time: they mostly wait")
	var java, ours outcomes
	var said [2]string
	var failed [2]error
	var both sync.WaitGroup
	both.Go(func() { java, said[0], failed[0] = s.on(ctx, e.Connect()) })
	both.Go(func() { ours, said[1], failed[1] = s.on(ctx, address) })
	both.Wait()
	for i, err := range failed {
		if err != nil {
			return false, fmt.Errorf("%w\n%s", err, said[i])
		}
	}
	if ok = compare(ours, java); !ok {
		fmt.Printf("what pytest said of menagerie serve:\n%s\n", said[1])
	}
	return ok, nil
}

// compare prints what differs, and reports whether that is all right. If nothing has passed on a real server, the suite itself is broken.
func compare(ours, java outcomes) (ok bool) {
	ok = java.passed() > 0
	all := maps.Clone(java)
	maps.Copy(all, ours)
	for _, test := range slices.Sorted(maps.Keys(all)) {
		o, j := cmp.Or(ours[test], "missing"), cmp.Or(java[test], "missing")
		reason, may := excused[test]
		switch {
		case o == j:
		case j == "passed" && !may:
			ok = false
			fmt.Printf("WORSE   %s: %s, passed on a real server\n", test, o)
		case j == "passed":
			fmt.Printf("excused %s: %s\n", test, reason)
		default:
			fmt.Printf("other   %s: %s, %s on a real server\n", test, o, j)
		}
	}
	fmt.Printf("passed: %d of %d by menagerie serve, %d of %d by a real server\n", ours.passed(), len(ours), java.passed(), len(java))
	return ok
}

// outcomes has "passed", "failed" or "skipped" for each test.
type outcomes map[string]string

func (o outcomes) passed() (n int) {
	for _, what := range o {
		if what == "passed" {
			n++
		}
	}
	return n
}

// read reads what the plugin has written.
func read(text string) outcomes {
	all := outcomes{}
	for line := range strings.Lines(text) {
		what, test, _ := strings.Cut(strings.TrimSpace(line), " ")
		if before := all[test]; before == "" || before == "passed" {
			all[test] = what
		}
	}
	return all
}
