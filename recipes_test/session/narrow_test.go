package session_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
)

// narrow is a connection that takes so many bytes a second, without a buffer.
type narrow struct {
	net.Conn
	rate  *atomic.Int64
	limit atomic.Int64 // the deadline of a Write, in ns since the Unix epoch; 0 if there is none
}

func (n *narrow) SetDeadline(at time.Time) error {
	_ = n.SetWriteDeadline(at)
	return n.Conn.SetDeadline(at)
}

func (n *narrow) SetWriteDeadline(at time.Time) error {
	n.limit.Store(0)
	if !at.IsZero() {
		n.limit.Store(at.UnixNano())
	}
	return nil
}

func (n *narrow) Write(b []byte) (sent int, err error) {
	for sent < len(b) {
		part := b[sent:min(sent+1<<10, len(b))]
		time.Sleep(time.Duration(len(part)) * time.Second / time.Duration(n.rate.Load()))
		if limit := n.limit.Load(); limit != 0 && time.Now().UnixNano() >= limit {
			return sent, os.ErrDeadlineExceeded
		}
		m, err := n.Conn.Write(part)
		if sent += m; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// narrowed is a session of ten seconds over links of 32 KB/s, which may change, and a count of its connections.
func narrowed(v *proving.Env) (s *zksync.Session, rate *atomic.Int64, dials *atomic.Int32) {
	rate, dials = new(atomic.Int64), new(atomic.Int32)
	rate.Store(32 << 10)
	return v.Session(zksync.WithTimeout(10*time.Second), zksync.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		c, err := v.Server.DialContext(ctx, network, addr)
		return &narrow{Conn: c, rate: rate}, err
	})), rate, dials
}

func TestARequestThatANarrowLinkTakesSlowlyCutsOnceAtTheMost(t *testing.T) {
	for size, cuts := range map[int]int32{1 << 10: 0, 20 << 10: 1, 60 << 10: 1, 90 << 10: 0} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, _, dials := narrowed(v)
				l := v.Lock(zksync.NewMutex(s, proving.LockPath))
				x := zkatomic.NewValue[string](s, "/x", zksync.WithCodec(zksync.Raw))
				for range 5 {
					start := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					require.NoError(t, x.Store(ctx, string(make([]byte, size))))
					cancel()
					require.Less(t, time.Since(start), 5*time.Second)
				}
				require.LessOrEqual(t, dials.Load(), 1+cuts)
				require.True(t, l.Valid())
				require.NoError(t, l.Unlock())
			})
		})
	}
}

func TestARequestThatALinkCannotTakeInTimeFailsAfterThreeCuts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, rate, dials := narrowed(v)
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		x := zkatomic.NewValue[string](s, "/x", zksync.WithCodec(zksync.Raw))
		rate.Store(32 << 20)
		require.NoError(t, x.Store(t.Context(), string(make([]byte, 700<<10))), "it was wide")
		rate.Store(32 << 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := x.Store(ctx, string(make([]byte, 600<<10)))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "WithTimeout")
		require.EqualValues(t, 1+3, dials.Load())
		require.NoError(t, x.Store(t.Context(), "small again"))
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
	})
}

// Whoever calls is not held up by a link that is known to be narrow.
func TestACallOverANarrowLinkEndsWithItsContext(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, _, _ := narrowed(v)
		x := zkatomic.NewValue[string](s, "/x", zksync.WithCodec(zksync.Raw))
		within, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		require.NoError(t, x.Store(within, string(make([]byte, 60<<10))))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, x.Store(ctx, string(make([]byte, 60<<10))), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
	})
}
