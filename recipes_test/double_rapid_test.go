package recipes_test

import (
	"testing"

	"pgregory.net/rapid"
)

// rapidly makes a test of rapid's pass for one of the testing package.
type rapidly struct {
	testing.TB
	t *rapid.T
}

func (r rapidly) Helper()                           { r.t.Helper() }
func (r rapidly) Cleanup(f func())                  { r.t.Cleanup(f) }
func (r rapidly) Errorf(format string, args ...any) { r.t.Errorf(format, args...) }
func (r rapidly) Fatalf(format string, args ...any) { r.t.Fatalf(format, args...) }
func (r rapidly) FailNow()                          { r.t.FailNow() }
func (r rapidly) Logf(format string, args ...any)   { r.t.Logf(format, args...) }
func (r rapidly) Failed() bool                      { return r.t.Failed() }

// modelled reports whether the models run here: they break things inside the server.
func modelled(t *testing.T) bool {
	ran := false
	inProcess(t, func(*testing.T, *env) { ran = true })
	return ran
}
