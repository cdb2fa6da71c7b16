package faults_test

import (
	"flag"
	"os"
	"testing"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
)

// TestMain sets how much the state machine does, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	amount := map[string]string{"rapid.checks": "60", "rapid.steps": "30", "rapid.nofailfile": "true"}
	if proving.Full {
		amount["rapid.checks"], amount["rapid.steps"] = "400", "50"
	}
	for name, value := range amount {
		if !given[name] {
			_ = flag.Set(name, value) // the flags of rapid are there, or the build fails
		}
	}
	os.Exit(m.Run())
}
