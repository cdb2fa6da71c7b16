package zktest

// TB is the part of a *testing.T that this package needs. A program may have a type of its own.
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
