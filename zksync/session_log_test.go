package zksync_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// logbook is a logger that keeps its lines, without their times.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logbook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logbook) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "session" {
				return slog.Attr{}
			}
			return a
		}}))
}

// take returns the lines since the last call.
func (b *logbook) take() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(b.text.String(), "\n"), "\n")
	b.text.Reset()
	if lines[0] == "" {
		return nil
	}
	return lines
}

func TestAnOutageIsTwoLinesAlthoughNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		b := &logbook{}
		s := srv.Session(t, zksync.WithTimeout(30*time.Second), zksync.WithLogger(b.logger(slog.LevelInfo)))
		require.Empty(t, b.take())
		allow := srv.Refuse()
		srv.Disconnect(s.ID())
		time.Sleep(time.Second - 1)
		require.Empty(t, b.take())
		time.Sleep(time.Nanosecond)
		require.Equal(t, []string{`level=WARN msg="connection lost" server=zktest:2181 ` +
			`error="the server closed it; the last attempt failed: zktest:2181: connection refused: no server listens there"`}, b.take())
		time.Sleep(2 * time.Second)
		require.Empty(t, b.take())
		allow()
		time.Sleep(time.Second)
		lines := b.take()
		require.Len(t, lines, 1)
		require.Regexp(t, `^level=INFO msg="connected again" server=zktest:2181 after=3(\.\d)?s$`, lines[0])
	})
}

func TestALostSessionIsTwoLinesAlthoughNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		b := &logbook{}
		s := srv.Session(t, zksync.WithTimeout(10*time.Second), zksync.WithLogger(b.logger(slog.LevelInfo)))
		first := s.ID()
		thaw := srv.Freeze()
		time.Sleep(12 * time.Second)
		require.Equal(t, []string{`level=WARN msg="connection lost" server=zktest:2181 ` +
			`error="silent: no answer for 6.7s; connected to zktest:2181: no answer for 1s: is this ZooKeeper's port, does it want TLS, or does the server hang?"`}, b.take())
		thaw()
		time.Sleep(10 * time.Second)
		lines := b.take()
		require.Len(t, lines, 1)
		require.Regexp(t, fmt.Sprintf(`^level=INFO msg="connected again in a new session" server=zktest:2181 after=\S+ `+
			`error="session 0x%x was lost: no server answered for 9\.5s, with a session timeout of 10s"$`, first), lines[0])
		require.Equal(t, zksync.Connected, s.State())
	})
}

func TestTheFirstFailedAttemptIsAWarningAndEveryOtherOneLineAtDebug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		defer srv.Refuse()()
		b := &logbook{}
		dials := 0
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := zksync.Connect(ctx, "zk1", zksync.WithLogger(b.logger(slog.LevelDebug)),
			zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				dials++
				return srv.DialContext(ctx, network, address)
			}))
		require.ErrorContains(t, err, "the last attempt failed: zk1:2181: connection refused: no server listens there")
		lines := b.take()
		require.Greater(t, dials, 10)
		require.Len(t, lines, dials)
		rest := ` msg="cannot connect" server=zk1:2181 error="connection refused: no server listens there"`
		require.Equal(t, "level=WARN"+rest, lines[0])
		for _, l := range lines[1:] {
			require.Equal(t, "level=DEBUG"+rest, l)
		}
	})
}

func TestEveryConnectionIsOneLineAtDebug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		b := &logbook{}
		s := srv.Session(t, zksync.WithLogger(b.logger(slog.LevelDebug)))
		require.Equal(t, []string{`level=DEBUG msg=connected server=zktest:2181`}, b.take())
		srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		require.Equal(t, []string{`level=DEBUG msg=disconnected server=zktest:2181 error="the server closed it"`,
			`level=DEBUG msg=connected server=zktest:2181`}, b.take())
		require.NoError(t, s.Close())
		require.Empty(t, b.take())
	})
}

func TestConnectThatGivesUpDuringTheFirstAttemptSaysWhatThatWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := zksync.Connect(ctx, "zk1", zksync.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "; dialing zk1:2181: no answer for 2s: is the host down, or a firewall in between?")
	})
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		defer srv.Freeze()()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := zksync.Connect(ctx, "zk1", zksync.WithDialer(srv.DialContext))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "; connected to zk1:2181: no answer for 2s: is this ZooKeeper's port, does it want TLS, or does the server hang?")
	})
}

// changes notes what a tracer is told of a session's state.
type changes struct {
	slowTracer
	mu   sync.Mutex
	told []zksync.StateChangeData
}

func (c *changes) StateChange(data zksync.StateChangeData) {
	time.Sleep(time.Second) // so slow that the next session is there before
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, data)
}

func TestAChangeOfStateNamesTheSessionThatItConcerns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c := &changes{}
		s := srv.Session(t, zksync.WithTracer(c))
		first := s.ID()
		srv.Expire(first)
		time.Sleep(time.Minute)
		second := s.ID()
		require.NotEqual(t, first, second)
		require.NoError(t, s.Close())
		type change struct {
			to      zksync.State
			session int64
			epoch   uint64
		}
		var told []change
		for _, d := range c.told {
			told = append(told, change{d.To, d.Session, d.Epoch})
		}
		require.Equal(t, []change{
			{zksync.Suspended, first, 1}, {zksync.Lost, first, 1}, {zksync.Connected, second, 2}, {zksync.Closed, second, 2},
		}, told)
	})
}

// Servers raise what is asked for to their least, which is two ticks: too little for a leader that is cut off.
func TestASessionTimeoutThatTheServersHadToRaiseIsWarnedOfOnce(t *testing.T) {
	for _, c := range []struct {
		asked, least time.Duration
		warned       bool
	}{
		{3 * time.Second, 4 * time.Second, true},
		{4 * time.Second, 4 * time.Second, false},  // nothing tells how long a tick is
		{3 * time.Second, 10 * time.Second, false}, // long enough
	} {
		for _, opts := range [][]zksync.SessionOption{nil, {zksync.WithExistingChroot()}} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithTimeoutLimits(c.least, time.Minute))
				srv.Load(map[string]string{"/ap": ""})
				b := &logbook{}
				s, err := chrooted(t, srv, append(opts, zksync.WithTimeout(c.asked), zksync.WithLogger(b.logger(slog.LevelWarn)))...)
				require.NoError(t, err)
				if !c.warned {
					require.Empty(t, b.take())
					return
				}
				require.Equal(t, []string{`level=WARN msg="the session timeout is short: if the servers' leader is cut off, a holder may learn of a loss too late" ` +
					`reason="3s was asked for, and the servers granted their least, 4s"`}, b.take())
				srv.Expire(s.ID())
				time.Sleep(time.Second)
				require.Equal(t, zksync.Connected, s.State())
				require.Empty(t, b.take())
			})
		}
	}
}
