//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALockWithADelayIsObtainedLaterAfterALoss(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	lock := func(args ...string) *program {
		return run(t, append(append([]string{"lock", "/a", "--servers", s.addr}, args...), "--", "echo", "ran")...)
	}
	start := time.Now()
	lock("--lock-delay", "10m").succeeded()
	lock("--lock-delay", "10m").succeeded()
	require.Less(t, time.Since(start), 5*time.Minute, "a release is no loss")

	p := holder(t, s, "/a", "--lock-delay", "2s")
	lock("--try").failed(exitUsage, "/a", "lock delay of 2s")
	lock("--try", "--lock-delay", "3s").failed(exitUsage, "/a", "holder has 2s")
	names := s.Children("/a")
	for _, name := range names {
		if strings.HasPrefix(name, "_c_") {
			s.Delete("/a/" + name)
		}
	}
	p.failed(exitLost, "/a", "removed its node")
	look := run(t, "ls", "/a", "--servers", s.addr)
	look.succeeded()
	require.Contains(t, look.stdout.String(), "the lock delay of 2s")
	start = time.Now()
	lock("--lock-delay", "2s", "--try").failed(exitNotObtained, "/a", "not free")
	lock("--lock-delay", "2s", "--wait", "300ms").failed(exitNotObtained, "/a", "it was lost, and its lock delay has not passed")
	lock("--lock-delay", "2s", "--wait", "1m").succeeded()
	require.GreaterOrEqual(t, time.Since(start), 2*time.Second)
	lock("--try").succeeded()
}

func TestALockDelayIsADuration(t *testing.T) {
	t.Parallel()
	for _, d := range []string{"0", "-1s", "soon", "25h"} {
		run(t, "lock", "/a", "--lock-delay", d, "--", "true").failed(exitUsage, "--lock-delay")
	}
}
