package zksync_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// lines is a log that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) option() zksync.SessionOption {
	return zksync.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// Whoever hands the lock on after a long hold queues again, and removes the old node in the same transaction.
func TestQueueingAnewAfterALongHoldIsNoRemovalBySomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(time.Hour), log.option())
		m := zksync.NewMutex(s, "/locks/a", zksync.WithHandover(0))
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		for range 20 {
			time.Sleep(time.Second)
			next := make(chan *zksync.Lease)
			go func() {
				l, _ := m.LockContext(context.Background())
				next <- l
			}()
			synctest.Wait()
			before := srv.Requests()
			require.NoError(t, l.Unlock())
			l = <-next
			synctest.Wait()
			require.Equal(t, 1, srv.Requests()-before)
		}
		require.NoError(t, l.Unlock())
		require.NotContains(t, log.String(), "deleted by somebody else")
	})
}

// Hours lie between its reconnects, so none of them is a reason for a pause.
func TestAWaiterHearsOfItsGrantAtOnceHoweverOftenItHasReconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		holder, err := zksync.NewMutex(srv.Session(t), "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		s := srv.Session(t)
		got := make(chan *zksync.Lease, 1)
		go func() {
			l, _ := zksync.NewMutex(s, "/locks/a").LockContext(context.Background())
			got <- l
		}()
		zktest.WaitChildren(t, srv, "/locks/a", 2)
		for range 13 {
			time.Sleep(10 * time.Minute)
			srv.Disconnect(s.ID())
		}
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, zksync.Connected, s.State())
		start := time.Now()
		require.NoError(t, holder.Unlock())
		l := <-got
		require.Zero(t, time.Since(start))
		require.NoError(t, l.Unlock())
	})
}

// closer closes the session when it hears that the connection is back.
type closer struct {
	slog.Handler
	s *zksync.Session
}

func (c *closer) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "connected again" {
		return c.s.Close()
	}
	return nil
}

func TestALoggerMayCloseTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		c := &closer{Handler: slog.NewTextHandler(io.Discard, nil)}
		c.s = srv.Session(t, zksync.WithLogger(slog.New(c)))
		id := c.s.ID()
		allow := srv.Refuse()
		srv.Disconnect(id)
		time.Sleep(2 * time.Second) // so long that its end is more than a line at the debug level
		allow()
		time.Sleep(time.Minute)
		require.Equal(t, zksync.Closed, c.s.State())
	})
}
