package zksync_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// replaced is a session whose servers are replaced by others with fewer transactions, when replace is called.
func replaced(t *testing.T, opts ...zksync.SessionOption) (s *zksync.Session, fresh *zktest.Server, log *logbook, replace func()) {
	srv := zktest.Run(t, zktest.WithLeftovers())
	fresh = zktest.Run(t, zktest.WithLeftovers())
	for range 100 {
		srv.Load(map[string]string{"/x": "x"})
	}
	var at atomic.Pointer[zktest.Server]
	at.Store(srv)
	log = &logbook{}
	s, err := zksync.Connect(t.Context(), "zk1", append(opts, zksync.WithTimeout(10*time.Second), zksync.WithLogger(log.logger(slog.LevelWarn)),
		zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			return at.Load().DialContext(ctx, network, address)
		}))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, fresh, log, func() {
		at.Store(fresh)
		srv.Disconnect(s.ID())
		time.Sleep(30 * time.Second) // the old session is lost, and the next one is there
	}
}

func warnings(log *logbook) (went []string) {
	for _, l := range log.take() {
		if strings.Contains(l, "lost transactions") {
			went = append(went, l)
		}
	}
	return went
}

func TestServersThatHaveLostTransactionsAreOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, log, replace := replaced(t)
		m := zksync.NewMutex(s, "/l")
		before, err := m.LockContext(t.Context())
		require.NoError(t, err)
		replace()
		require.ErrorIs(t, before.Err(), zksync.ErrLost)
		require.Empty(t, warnings(log), "nothing is known before a change")
		after, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.Negative(t, after.Token().Compare(before.Token()))
		found := warnings(log)
		require.Len(t, found, 1)
		require.Regexp(t, `^level=WARN msg="the servers have lost transactions: tokens and values may be older than known ones" error="zxid 0x\w+ after 0x\w+"$`, found[0])
		require.NoError(t, after.Unlock())
		m.Lock()
		m.Unlock()
		require.Empty(t, warnings(log), "once")
	})
}

func TestForwardOnlyEndsASessionWhoseServersHaveLostTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fresh, log, replace := replaced(t, zksync.WithForwardOnly())
		m := zksync.NewMutex(s, "/l")
		before, err := m.LockContext(t.Context())
		require.NoError(t, err)
		waited := make(chan error, 1)
		go func() {
			_, err := zksync.NewMutex(s, "/l").LockContext(t.Context())
			waited <- err
		}()
		replace()
		const says = "the servers have lost transactions that this session has seen (WithForwardOnly)"
		for _, err := range []error{<-waited, func() error { _, err := m.LockContext(t.Context()); return err }(),
			func() error { _, err := zkatomic.NewInt64(s, "/n").Load(t.Context()); return err }()} {
			require.ErrorIs(t, err, zksync.ErrStale)
			require.ErrorContains(t, err, says)
		}
		require.ErrorIs(t, before.Err(), zksync.ErrLost)
		_, made := fresh.Node("/l")
		require.False(t, made, "nothing is asked of them but whether they are behind")
		found := warnings(log)
		require.Len(t, found, 1)
		require.Contains(t, found[0], "level=ERROR")
		require.Empty(t, fresh.Sessions(), "the session that found out is ended")
	})
}

// It costs one request in each ZooKeeper session after the first, and goes on where nothing was lost.
func TestForwardOnlyGoesOnWithServersThatHaveLostNothing(t *testing.T) {
	for want, opts := range [][]zksync.SessionOption{nil, {zksync.WithForwardOnly()}} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			log := &logbook{}
			s := srv.Session(t, append(opts, zksync.WithTimeout(10*time.Second), zksync.WithLogger(log.logger(slog.LevelWarn)))...)
			zksync.NewMutex(s, "/l").Lock()
			for range 3 {
				before := srv.RequestsBy(zktest.Multi)
				srv.Expire(s.ID())
				time.Sleep(time.Minute)
				require.Equal(t, want, srv.RequestsBy(zktest.Multi)-before)
			}
			_, err := zksync.NewMutex(s, "/other").LockContext(t.Context())
			require.NoError(t, err)
			require.Empty(t, warnings(log))
		})
	}
}

func TestForwardOnlyGoesOnWhereServersLagAndLeadersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := zktest.RunEnsemble(t, 3)
		log := &logbook{}
		s := e.Session(t, zksync.WithForwardOnly(), zksync.WithTimeout(10*time.Second), zksync.WithLogger(log.logger(slog.LevelWarn)))
		m := zksync.NewMutex(s, "/l")
		for i := range 12 {
			m.Lock()
			m.Unlock()
			catchUp := e.Lag((e.Leader() + 1 + i%2) % 3)
			e.Expire(s.ID())
			time.Sleep(3 * time.Second)
			if i%4 == 3 {
				e.ElectLeader((e.Leader() + 1) % 3)
			}
			catchUp()
			time.Sleep(time.Minute)
			require.Equal(t, zksync.Connected, s.State())
		}
		require.Empty(t, warnings(log))
	})
}
