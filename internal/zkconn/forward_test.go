package zkconn

import (
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
	"github.com/go-menagerie/menagerie/internal/logs"
)

// at is an answer with a zxid.
func at(zxid int64, xid, code int32, body []byte) []byte {
	b := answer(xid, code, body)
	binary.BigEndian.PutUint64(b[4:], uint64(zxid))
	return b
}

// A server that lags answers all but changes by what it knows. In a new session that may be less than an earlier one has seen.
func TestOnlyTheAnswerToAChangeShowsThatTransactionsWereLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var log strings.Builder
		c := p.open(10*time.Second, func(cfg *Config) {
			cfg.Log = logs.New(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		})
		first := newScript(p, p.greet(1, 10*time.Second))
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		answered := func(s *script, zxid int64, code int32, body []byte, ask func() error) error {
			done := make(chan error, 1)
			go func() { done <- ask() }()
			xid, _, _ := s.next()
			p.write(s.conn, at(zxid, xid, code, body))
			return <-done
		}
		exists := func() error { _, _, err := e.Exists(t.Context(), "/a"); return err }
		create := func() error { _, err := e.Create(t.Context(), "/a", nil, 0, zk.WorldACL(zk.PermAll)); return err }
		made := jute.AppendText(nil, "/a")
		require.NoError(t, answered(first, 100, 0, make([]byte, jute.StatSize), exists))
		first.conn.Close()
		p.greet(0, 10*time.Second).Close() // the session is gone
		second := newScript(p, p.greet(2, 10*time.Second))
		e, err = c.Epoch(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, e.Number())

		require.NoError(t, answered(second, 50, 0, make([]byte, jute.StatSize), exists))
		require.NoError(t, answered(second, 50, 0, jute.AppendText(nil, "/a"), func() error { return e.Sync(t.Context(), "/a") }), "a leader that was deposed")
		require.ErrorIs(t, answered(second, 50, codeNoAuth, nil, create), zk.ErrNoAuth)
		require.NoError(t, answered(second, 101, 0, made, create))
		synctest.Wait()
		require.Empty(t, log.String())
		require.NoError(t, answered(second, 50, codeNodeExists, nil, func() error {
			require.ErrorIs(t, create(), zk.ErrNodeExists)
			return nil
		}))
		synctest.Wait()
		require.Contains(t, log.String(), `level=WARN msg="the servers have lost transactions: tokens and values may be older than known ones" session=0x2 error="zxid 0x32 after 0x65"`)
		log.Reset()
		require.NoError(t, answered(second, 51, 0, made, create))
		synctest.Wait()
		require.Empty(t, log.String())
		second.close(c)
	})
}
