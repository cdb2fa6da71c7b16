//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

// The holder, the one that waits and the one that releases are each at another server.
func TestReleaseOnThreeRealServers(t *testing.T) {
	t.Parallel()
	e := ensemble.ForTest(t, 3)
	at := func(n int, args ...string) []string { return append(args, "--servers", e.Servers()[n].Addr()) }
	h := start(t, append(at(0, "lock", "/a"), slowly...)...)
	h.prints("holding")
	next := start(t, append(at(1, "lock", "/a"), "--", "true")...)
	require.Eventually(t, func() bool { return len(contenders(t, e.Servers()[1].Addr(), "/a")) == 2 }, patience, pause)
	p := run(t, at(2, "release", "/a", "--holder", "--yes", "--reason", "it hangs")...)
	p.succeeded()
	learned(t, p, h, "it hangs")
	next.succeeded()
	require.Empty(t, contenders(t, e.Connect(), "/a"))
	run(t, at(2, "release", "/a", "--holder", "--yes")...).failed(exitNoSuchPath, "/a")
}
