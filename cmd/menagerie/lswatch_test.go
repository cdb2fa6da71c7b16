//go:build unix

package main

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestWatchPrintsAgainWhatHasChanged(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	l, err := zksync.NewMutex(z, "/w/a").LockContext(t.Context())
	require.NoError(t, err)
	p := start(t, "ls", "/w/a", "--watch", "--servers", s.addr)
	p.prints("held")
	background(t, func(ctx context.Context) { _, _ = zksync.NewMutex(z, "/w/a").LockContext(ctx) })
	p.prints("waiting")
	for _, c := range s.Sessions() {
		s.Disconnect(c.ID)
	}
	frames := strings.Count(p.stdout.String(), "POS")
	require.NoError(t, l.Unlock())
	require.Eventually(t, func() bool { return strings.Count(p.stdout.String(), "POS") > frames }, patience, pause)
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait(), p.stderr.String())

	j := start(t, "ls", "/w", "--watch", "--json", "--servers", s.addr)
	j.prints(`"path":"/w/a"`)
	_, err = zksync.NewMutex(z, "/w/b").LockContext(t.Context())
	require.NoError(t, err)
	j.prints(`"path":"/w/b"`)
	for line := range strings.Lines(j.stdout.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	j.signal(syscall.SIGTERM)
	require.Equal(t, 143, j.wait())

	run(t, "ls", "/nothing", "--watch", "--servers", s.addr).failed(exitNoSuchPath, "/nothing does not exist")
}

// In virtual time: nobody looks while nothing happens, and then not more often than every pause.
func TestNobodyLooksAgainBeforeSomethingHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		z := srv.Session(t)
		_, err := z.Conn().Create("/a", nil, 0, zk.WorldACL(zk.PermAll)) // or the server would remove it when it is empty
		require.NoError(t, err)
		m := zksync.NewMutex(z, "/a")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		watcher := srv.Session(t)
		ctx, cancel := context.WithCancel(t.Context())
		looks := make(chan string, 100)
		done := make(chan error, 1)
		go func() {
			done <- tree.Follow(ctx, watcher, time.Second, true, func(ctx context.Context, l *tree.Look) error {
				o, err := l.Object(ctx, "/a")
				if err == nil {
					looks <- o.State
				}
				return err
			})
		}()
		next := func() string {
			select {
			case state := <-looks:
				return state
			case <-time.After(time.Hour):
				return "no look"
			}
		}
		require.Equal(t, "held", next())
		time.Sleep(time.Hour)
		require.Empty(t, looks)
		changed := time.Now()
		require.NoError(t, l.Unlock())
		require.Equal(t, "empty", next())
		require.Equal(t, time.Second, time.Since(changed))
		srv.Disconnect(watcher.ID())
		require.Equal(t, "empty", next(), "something may have happened meanwhile")
		srv.Expire(watcher.ID())
		require.Equal(t, "empty", next(), "in the next session")
		_, err = m.LockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, "held", next())
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// What a State reads below the path is watched, too.
func TestChangesBelowThePathAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		z, watcher := srv.Session(t), srv.Session(t)
		ctx := t.Context()
		queue, number, table := zkqueue.New[int](z, "/queue"), zkatomic.NewInt64(z, "/number"), zkmap.New[int, int](z, "/map")
		keys := 0
		latch, once, sem := zklatch.New(z, "/latch", 9), zkonce.New(z, "/once"), zksemaphore.NewWeighted(z, "/sem", 9)
		for path, change := range map[string]func() error{
			"/queue":  func() error { return queue.Put(ctx, 1) },
			"/number": func() error { _, err := number.Add(ctx, 1); return err },
			"/map":    func() error { keys++; return table.Store(ctx, keys, 1) },
			"/latch":  func() error { return latch.CountDown(ctx) },
			"/once": func() error {
				_, err := once.DoContext(ctx, func(context.Context) ([]byte, error) { return nil, nil })
				return err
			},
			"/sem": func() error { _, err := sem.AcquireLease(ctx, 1); return err },
		} {
			if path != "/once" { // which changes nothing the second time
				require.NoError(t, change())
			} else {
				srv.Create("/once", nil, 0, 0)
				srv.Create("/once/lock", nil, 0, 0)
			}
			following, cancel := context.WithCancel(ctx)
			details, done := make(chan string, 9), make(chan error, 1)
			go func() {
				done <- tree.Follow(following, watcher, time.Second, true, func(ctx context.Context, l *tree.Look) error {
					o, err := l.Object(ctx, path)
					if err == nil {
						details <- o.Detail
					}
					return err
				})
			}()
			before := <-details
			require.NoError(t, change())
			synctest.Wait()
			time.Sleep(2 * time.Second)
			require.NotEmpty(t, details, path)
			require.NotEqual(t, before, <-details, path)
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
		}
	})
}

func TestWatchToldOfAPathThatGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.session(t).Conn()
	make := func(path string) {
		t.Helper()
		_, err := conn.Create(path, []byte("x"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	make("/d")
	make("/d/e")
	p := start(t, "ls", "/d/e", "--watch", "--servers", s.addr)
	p.prints("1 byte of data")
	require.NoError(t, conn.Delete("/d/e", -1))
	p.prints("/d/e does not exist")
	require.NoError(t, conn.Delete("/d", -1))
	make("/d")
	make("/d/e")
	require.Eventually(t, func() bool { return strings.Count(p.stdout.String(), "1 byte of data") == 2 }, patience, pause, p.stdout.String())
}
