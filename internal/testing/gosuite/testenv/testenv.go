// Package testenv has what Go's tests use of internal/testenv.
package testenv

import (
	"os"
	"testing"
)

// Executable is the program that runs.
func Executable(t testing.TB) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// MustHaveExec does nothing: processes can be started here.
func MustHaveExec(testing.TB) {}

// SkipIfOptimizationOff does nothing: optimization is on.
func SkipIfOptimizationOff(testing.TB) {}
