//go:build unix

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// waits starts a wait for path, and returns when it waits and has said so.
func waits(t *testing.T, s *server, path, says string) *program {
	t.Helper()
	p := start(t, "wait", path, "-v", "--servers", s.addr)
	p.complains("menagerie: waiting for " + path + ": " + says)
	require.NotContains(t, p.stderr.String(), "in line")
	return p
}

func TestWaitEndsWhenNobodyHoldsOrWaits(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "wait", "/a", "--servers", s.addr).succeeded() // does not exist
	h := holder(t, s, "/a")
	next := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", "echo holding; exec sleep 600")
	s.queued(t, "/a", 2)
	quiet := start(t, "wait", "/a", "--wait", "10m", "--servers", s.addr)
	w := waits(t, s, "/a", "held by ")
	run(t, "wait", "/a", "--wait", "3s", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for /a on "+s.addr+" after 3s: held by ", " pid ", " for ")
	interrupted := waits(t, s, "/a", "held by ")
	interrupted.signal(syscall.SIGTERM)
	require.Equal(t, 143, interrupted.wait())
	h.signal(syscall.SIGTERM)
	next.prints("holding")
	require.Equal(t, 143, h.wait())
	require.True(t, alive(w.cmd.Process.Pid))
	require.True(t, alive(quiet.cmd.Process.Pid))
	require.Len(t, contenders(t, s.addr, "/a"), 1)
	next.signal(syscall.SIGTERM)
	quiet.succeeded()
	require.Equal(t, 0, w.wait(), w.stderr.String())
	require.Equal(t, 143, next.wait())
	require.Empty(t, s.Children("/a"))
}

// The reason of menagerie release stays for a moment where the holder does not read it.
func TestALockWithTheReasonOfARemovalAloneIsFree(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.Create("/a", nil, 0, 0)
	s.Create("/a/revoke-1144de0b-e15c-9b2e-944b-898d00056c53_lock-2147483647", []byte(`{"removed":true,"reason":"it hangs"}`), 0, 0)
	run(t, "wait", "/a", "--servers", s.addr).succeeded()
	run(t, "release", "/a", "--holder", "--yes", "--servers", s.addr).failed(exitNoSuchPath, "/a")
	require.Contains(t, s.ls(t, "/a"), "holds or waits for /a")
}

// A lost lock with a delay has its mark, and no entry.
func TestALockWhoseDelayHasBegunIsFreeForWait(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/a", "--lock-delay", "10m")
	w := waits(t, s, "/a", "held by ")
	for _, name := range s.Children("/a") {
		if strings.HasPrefix(name, "_c_") {
			s.Delete("/a/" + name)
		}
	}
	require.Equal(t, 0, w.wait(), w.stderr.String())
	h.failed(exitLost, "/a")
	require.Contains(t, s.ls(t, "/a"), "lock delay of 10m")
	run(t, "wait", "/a", "--servers", s.addr).succeeded()
}

func TestWaitSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a", "--grace", "1ms")
	w := waits(t, s, "/a", "held by ")
	s.Stop()
	w.complains("connection lost")
	s.RestartEmpty()
	require.Equal(t, 0, w.wait(), w.stderr.String())
}

func TestWaitGivesUpInTimeWhenTheServersFallSilent(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a", "--timeout", "1m")
	began := time.Now()
	w := start(t, "wait", "/a", "-v", "--wait", "10s", "--servers", s.addr)
	w.complains("menagerie: waiting for /a: held by ")
	defer s.Freeze()()
	require.Equal(t, exitNotObtained, w.wait())
	require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
	require.Less(t, time.Since(began), 30*time.Second, "not for ever")
	require.Contains(t, w.stderr.String(), "gave up waiting for /a")
}

func TestWaitKnowsEveryKindThatProcessesTakePartIn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	ctx := t.Context()
	monitor := zksync.NewMutex(z, "/monitor")
	lease := func(l *zksync.Lease, err error) func() {
		require.NoError(t, err)
		return func() { _ = l.Unlock() }
	}
	// blocks runs f in the background until the end that it returns is called.
	blocks := func(t *testing.T, f func(context.Context) error) func() {
		ctx, end := context.WithCancel(t.Context())
		background(t, func(context.Context) { _ = f(ctx) })
		return end
	}
	for _, c := range []struct {
		path, says string
		use        func(t *testing.T, path string) (end func())
	}{
		{"/rw", "held for reading", func(t *testing.T, p string) func() { return lease(zkrwmutex.New(z, p).RLockContext(ctx)) }},
		{"/sem", "3 of 8 permits held by ", func(t *testing.T, p string) func() {
			return lease(zksemaphore.NewWeighted(z, p, 8).AcquireLease(ctx, 3))
		}},
		{"/once", "run by ", func(t *testing.T, p string) func() {
			return blocks(t, func(ctx context.Context) error {
				_, err := zkonce.New(z, p).DoContext(ctx, func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
				return err
			})
		}},
		{"/barrier", "1 of 3 have arrived", func(t *testing.T, p string) func() {
			return blocks(t, func(ctx context.Context) error { _, err := zkbarrier.NewBarrier(z, p, 3).Await(ctx); return err })
		}},
		{"/double", "1 of 2 have arrived", func(t *testing.T, p string) func() {
			return blocks(t, zkbarrier.NewDoubleBarrier(z, p, 2).Enter)
		}},
		{"/cond", "1 waits", func(t *testing.T, p string) func() {
			return blocks(t, func(ctx context.Context) error {
				l, err := monitor.LockContext(ctx)
				if err == nil {
					_, err = zkcond.New(monitor, p).WaitContext(ctx, l)
				}
				return err
			})
		}},
		{"/phaser", "phase 0: 0 of 1", func(t *testing.T, p string) func() {
			ph := zkphaser.New(z, p)
			_, err := ph.Register(ctx)
			require.NoError(t, err)
			return func() { _, _ = ph.ArriveAndDeregister(ctx) }
		}},
		{"/wg", "3 members not done", func(t *testing.T, p string) func() {
			g := zkwaitgroup.New(z, p)
			require.NoError(t, g.AddContext(ctx, 3))
			return func() { _ = g.AddContext(ctx, -3) }
		}},
		{"/group", "1 member", func(t *testing.T, p string) func() {
			m, err := zkgroup.New(z, p).Join(ctx, zkgroup.Member{ID: "web"})
			require.NoError(t, err)
			return func() { _ = m.Leave(ctx) }
		}},
		{"/slots", "1 of 3 slots taken", func(t *testing.T, p string) func() {
			_, l, err := zkatomic.NewSlots(z, p, 3).Acquire(ctx)
			return lease(l, err)
		}},
		{"/durable", "held by release-42", func(t *testing.T, p string) func() {
			h, err := zkdurable.NewMutex(z, p).Lock(ctx, "release-42")
			require.NoError(t, err)
			return func() { _ = h.Unlock(ctx) }
		}},
	} {
		t.Run(c.path[1:], func(t *testing.T) {
			end := c.use(t, c.path)
			s.says(t, c.path, strings.TrimSuffix(c.says, " for reading")) // else wait could come first, and would find nobody
			w := waits(t, s, c.path, c.says)
			run(t, "wait", c.path, "--wait", "500ms", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for "+c.path, "after 500ms: ")
			require.True(t, alive(w.cmd.Process.Pid))
			end()
			require.Equal(t, 0, w.wait(), w.stderr.String())
			run(t, "wait", c.path, "--servers", s.addr).succeeded()
		})
	}
}

func TestWaitRefusesWhatHasNoHoldersOrWaiters(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "latch", "down", "/l", "--count", "2", "--servers", s.addr).succeeded()
	run(t, "gate", "close", "/dir/g", "--servers", s.addr).succeeded()
	_, err := zkatomic.NewInt64(s.session(t), "/n").Add(t.Context(), 1)
	require.NoError(t, err)
	for path, says := range map[string]string{
		"/l": `use "menagerie latch wait"`, "/dir/g": `use "menagerie gate wait"`, "/n": "/n is a counter, which has no holders or waiters",
		"/dir": "/dir is a directory", "/zookeeper": "want a lock, rwlock, semaphore, election,",
	} {
		run(t, "wait", path, "--servers", s.addr).failed(exitUsage, says)
	}
	_, err = s.session(t).Conn().Create("/mine", []byte("x"), 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "me:" + hash}})
	require.NoError(t, err)
	run(t, "wait", "/mine", "--servers", s.addr).failed(exitFailure, "/mine is not readable with these credentials: see --auth")
	run(t, "wait", "/a", "x").failed(exitUsage, `found "x" too`)
	run(t, "wait").failed(exitUsage, "PATH is missing")
}

// The release of an entry ahead must not have every process that waits read the whole queue.
func TestWaitLooksAgainWhenTheLastEntryHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var leases [3]*zksync.Lease
		for i := range leases {
			s := srv.Session(t)
			background(t, func(ctx context.Context) { leases[i], _ = zksync.NewMutex(s, "/a").LockContext(ctx) })
			synctest.Wait()
		}
		looks, ended := 0, make(chan error, 1)
		s := srv.Session(t)
		background(t, func(ctx context.Context) {
			ended <- tree.Follow(ctx, s, redraw, true, func(ctx context.Context, l *tree.Look) error {
				looks++
				return untilFree(ctx, l, "/a")
			})
		})
		for i := range leases {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, 1, looks)
			require.NoError(t, leases[i].Unlock())
		}
		released := time.Now()
		require.ErrorIs(t, <-ended, errFree)
		require.Equal(t, redraw, time.Since(released))
		require.Equal(t, 2, looks)
	})
}
