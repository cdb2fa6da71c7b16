package zktest

// TB is the part of a test that this package needs. A *testing.T, *testing.B or *testing.F is one. A program may have
// a type of its own: this package does not link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Log(args ...any)
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
