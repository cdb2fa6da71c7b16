//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkserver"
)

func TestALostLockEndsTheCommandWith76(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	// The command would like to end with 0.
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--", "sh", "-c", `exec 2>/dev/null; trap 'exit 0' TERM; echo holding; while :; do sleep 0.01; done`)
	p.prints("holding")
	s.Close()
	p.failed(exitLost, "/a", s.addr, "lost", "session timeout of 500ms")
}

func TestALockWhoseNodeIsDeletedIsLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := holder(t, s, "/a")
	names, _ := s.Children("/a")
	require.Len(t, names, 1)
	_, code := s.Do(zkserver.Call{Op: zkserver.OpDelete, Path: "/a/" + names[0], Version: -1}, 0)
	require.Zero(t, code)
	p.failed(exitLost, "/a", "removed its node")
}

func TestACommandThatIgnoresTheLossIsKilledWithItsWholeGroupAfterGrace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--grace", "300ms", "--",
		"sh", "-c", `trap '' TERM; sleep 600 & echo "grandchild $!."; wait; sleep 600`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/a")
	requireGone(t, grandchild(t, p))
}

func TestAStubbornGrandchildIsKilledAlthoughTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--grace", "300ms", "--",
		"sh", "-c", `(trap '' TERM; exec sleep 600) & echo "grandchild $!."; wait`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/a")
	requireGone(t, grandchild(t, p))
}

func TestAKilledHolderTakesItsCommandAlongAndIsSucceeded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--",
		"sh", "-c", `echo "grandchild $$. $MENAGERIE_TOKEN"; exec sleep 600`)
	h.prints("-")
	w := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", "echo $MENAGERIE_TOKEN")
	s.queued(t, "/a", 2)
	require.NoError(t, h.cmd.Process.Kill())
	w.succeeded()
	requireGone(t, grandchild(t, h))
	require.Greater(t, strings.TrimSpace(w.stdout.String()), strings.Fields(h.stdout.String())[2])
}
