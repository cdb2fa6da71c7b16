package weather

import (
	"testing"

	"pgregory.net/rapid"
)

// InRapid makes a test of rapid's pass for one of the testing package.
func InRapid(t testing.TB, rt *rapid.T) testing.TB { return adapter{t, rt} }

type adapter struct {
	testing.TB
	t *rapid.T
}

func (r adapter) Helper()                           { r.t.Helper() }
func (r adapter) Cleanup(f func())                  { r.t.Cleanup(f) }
func (r adapter) Fatalf(format string, args ...any) { r.t.Fatalf(format, args...) }
func (r adapter) FailNow()                          { r.t.FailNow() }
func (r adapter) Logf(format string, args ...any)   { r.t.Logf(format, args...) }
func (r adapter) Failed() bool                      { return r.t.Failed() }
func (r adapter) Errorf(format string, args ...any) { r.t.Errorf(format, args...) }
