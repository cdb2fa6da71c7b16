package zktest

// TB is what this package needs of a *testing.T.
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
