// Package proving is what the tests of the recipes share: where a test runs (Env), calls in goroutines of their own
// (Attempt), networks that break (Cable), strikes that fall on each request in turn, and how many cases of an enumeration
// are run.
//
// Each runs a test on the in-process server in virtual time, where instants are exact, or, when MENAGERIE_TEST_SERVERS
// holds a connect string, on those real servers in real time, below a node of its own.
package proving

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// Full is the one switch for everything that takes long: with MENAGERIE_FULL=1 every case of every enumeration is run,
// and what is random runs longer. "make faults" sets it.
var Full = os.Getenv("MENAGERIE_FULL") == "1"

// Drawn reports whether a case of an enumeration is run: each of them, or with -short one in twenty, always the
// same ones. That is for the race detector, which finds in a few cases what it would find in all of them. The
// Makefile knows by their names which tests are played in full without it.
func Drawn(t testing.TB, what ...any) bool { return drawn(t, 1, what) }

// Third is Drawn for an enumeration that repeats another one under other conditions: without -short it runs one case in three.
func Third(t testing.TB, what ...any) bool { return drawn(t, 3, what) }

func drawn(t testing.TB, of uint32, what []any) bool {
	if testing.Short() {
		of = 20
	}
	if Full || of == 1 {
		return true
	}
	sum := fnv.New32a()
	fmt.Fprintln(sum, append(what, t.Name())...)
	return sum.Sum32()%of == 0
}
