package ensemble

import (
	"errors"
	"os"
	"sync"
	"testing"
)

// Environment variables that decide what a test does on a machine without ZooKeeper.
const (
	// RequireEnv set to 1 makes such a test fail instead of being skipped, as CI=true does.
	RequireEnv = "MENAGERIE_REQUIRE_ENSEMBLE"

	// EnsembleEnv set to 3 asks for the tests that start and kill servers of their own; whoever asks
	// for them does not want them skipped.
	EnsembleEnv = "MENAGERIE_TEST_ENSEMBLE"

	// ServersEnv holds the connect string of an ensemble that is already running, for test suites
	// that only need clients.
	ServersEnv = "MENAGERIE_TEST_SERVERS"
)

// installed asks once per process: the answer costs the start of a Java machine.
var installed = sync.OnceValue(Installed)

// Require skips the test if ZooKeeper is not installed, with the command that installs it, or fails it
// where the environment says that the test must run: CI=true, [RequireEnv] or [EnsembleEnv].
func Require(t testing.TB) {
	t.Helper()
	err := installed()
	switch {
	case err == nil:
	case !errors.Is(err, ErrNotInstalled) || Required():
		t.Fatal(err)
	default:
		// The one skip that the house allows: "go test ./..." shall work with nothing but Go, and
		// "make test" and the CI, which install ZooKeeper, do not let it pass.
		t.Skip(err)
	}
}

// Required reports whether the environment says that a test that needs real servers, or what else can be installed, must
// run.
func Required() bool {
	return os.Getenv("CI") == "true" || os.Getenv(RequireEnv) == "1" || os.Getenv(EnsembleEnv) != ""
}

// ForTest starts an ensemble of n servers, 1 or 3, that is closed when the test ends. If the test
// fails, the ends of the servers' logs are shown. It calls [Require].
func ForTest(t testing.TB, n int) *Ensemble {
	t.Helper()
	return ForTestConfig(t, Config{Servers: n})
}

// ForTestConfig is [ForTest] for an ensemble that is not the usual one.
func ForTestConfig(t testing.TB, cfg Config) *Ensemble {
	t.Helper()
	Require(t)
	for _, dir := range RemoveLeftovers() {
		t.Logf("removed %s, which a run that was killed had left", dir)
	}
	e, err := Start(t.Context(), cfg)
	if err != nil {
		var failed *StartError
		if errors.As(err, &failed) {
			t.Log(failed.Logs)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(e.Logs(40))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
