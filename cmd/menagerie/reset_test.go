//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestResetRemovesWhatIsNotInUse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "barrier", "/b", "--parties", "1", "--servers", s.addr).succeeded()
	run(t, "reset", "/b", "--servers", s.addr).succeeded()
	first := start(t, "barrier", "/b", "--parties", "2", "--servers", s.addr)
	run(t, "barrier", "/b", "--parties", "2", "--servers", s.addr).succeeded()
	first.succeeded()
	run(t, "sem", "/s", "--permits", "2", "--servers", s.addr, "--", "true").succeeded()
	run(t, "reset", "/s", "--yes", "--servers", s.addr).succeeded()
	run(t, "sem", "/s", "--permits", "3", "--servers", s.addr, "--", "true").succeeded()
	run(t, "reset", "/none", "--servers", s.addr).failed(exitNoSuchPath, "/none")
	run(t, "reset", "/zookeeper", "--servers", s.addr).failed(exitRefused, "/zookeeper")
	c := s.session(t).Conn()
	make := func(path string) {
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	make("/b/README")
	run(t, "reset", "/b", "--servers", s.addr).failed(exitRefused, "/b/README")
	make("/app")
	make("/app/queue")
	run(t, "reset", "/app", "--servers", s.addr).failed(exitRefused, "/app")
}

func TestResetRefusesWhatIsInUse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	barrier := start(t, "barrier", "/b", "--parties", "2", "--servers", s.addr)
	s.waiting(t, "/b", 1)
	run(t, "reset", "/b", "--servers", s.addr).failed(exitRefused, "/b", "in use by", "pid")
	require.NoError(t, barrier.cmd.Process.Signal(syscall.SIGTERM))
	barrier.wait()
	sem := start(t, "sem", "/s", "--permits", "2", "--servers", s.addr, "--", "sleep", "60")
	require.Eventually(t, func() bool { return s.ChildCount("/s/queue") == 1 }, patience, pause)
	run(t, "reset", "/s", "--servers", s.addr).failed(exitRefused, "/s", "in use by", "pid")
	require.NoError(t, sem.cmd.Process.Signal(syscall.SIGTERM))
	sem.wait()
}

// What earlier versions did: the entry of a lock has overwritten the data.
func TestResetRepairsWhatALockHasDestroyed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	entry := []byte("_c_2d4a1c1e-6f0f-8b7e-9d4f-5a1b2c3d4e5f-lock-")
	for path, use := range map[string][]string{
		"/b": {"barrier", "/b", "--parties", "1", "--servers", s.addr},
		"/s": {"sem", "/s", "--permits", "2", "--servers", s.addr, "--", "true"},
	} {
		run(t, use...).succeeded()
		_, err := s.session(t).Conn().Set(path, entry, -1)
		require.NoError(t, err)
		run(t, use...).failed(exitUsage, path)
		run(t, "reset", path, "--servers", s.addr).succeeded()
		run(t, use...).succeeded()
	}
}

func TestALockIsRefusedThePathOfABarrierAndTheBarrierGoesOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for range 2 {
		run(t, "barrier", "/b", "--parties", "1", "--servers", s.addr).succeeded()
		run(t, "lock", "/b", "--servers", s.addr, "--", "true").failed(exitUsage, "/b", "zkbarrier")
	}
}
