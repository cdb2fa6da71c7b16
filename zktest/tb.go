package zktest

// TB is what this package needs of a test. A *testing.T, *testing.B or *testing.F is one, and so is whatever else a program has
// that reports: the package itself does not link package testing.
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
