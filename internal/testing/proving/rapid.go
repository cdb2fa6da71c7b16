package proving

import (
	"testing"

	"pgregory.net/rapid"
)

// InRapid makes a test of rapid's pass for one of the testing package: everything that a suite and zktest use goes to
// rapid, which needs to see failures in order to shrink.
func InRapid(t testing.TB, rt *rapid.T) testing.TB { return inRapid{t, rt} }

type inRapid struct {
	testing.TB
	t *rapid.T
}

func (r inRapid) Helper()                           { r.t.Helper() }
func (r inRapid) Cleanup(f func())                  { r.t.Cleanup(f) }
func (r inRapid) Fatalf(format string, args ...any) { r.t.Fatalf(format, args...) }
func (r inRapid) FailNow()                          { r.t.FailNow() }
func (r inRapid) Logf(format string, args ...any)   { r.t.Logf(format, args...) }
func (r inRapid) Failed() bool                      { return r.t.Failed() }

// Errorf reports to the test itself too: what depends on the order of goroutines may not happen again
// when rapid shrinks.
func (r inRapid) Errorf(format string, args ...any) {
	r.TB.Logf(format, args...)
	r.t.Errorf(format, args...)
}
