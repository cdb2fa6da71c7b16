package zkconn

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-zookeeper/zk"
)

// asked and granted are the session timeouts of these tests. All limits must come from what is granted.
const asked, granted = time.Minute, 3 * time.Second

func TestPausesBetweenAttemptsFollowTheTimeoutThatWasGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var refuse atomic.Bool
		d := &dialled{began: time.Now()}
		c := p.open(asked, func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if refuse.Load() {
					d.note(addr)
					return nil, syscall.ECONNREFUSED
				}
				return p.dial(ctx, network, addr)
			}
		})
		conn := p.greet(1, granted)
		p.serve(conn)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		refuse.Store(true)
		conn.Close()
		<-e.Over()
		over := time.Since(d.began)
		time.Sleep(10 * time.Second) // the next session is not granted yet; the servers are the same
		closeAll(p, c)
		for i := 1; i < len(d.at); i++ {
			if d.at[i-1] > over || d.at[i] < over { // else there is a pause between two sessions, too
				require.LessOrEqual(t, d.at[i]-d.at[i-1], granted/20)
			}
		}
	})
}

func TestAFrameThatIsNotTakenEndsTheConnectionByTheTimeoutThatWasGranted(t *testing.T) {
	for name, c := range map[string]struct {
		write func(e *Epoch)
		limit time.Duration
	}{
		"a large request":      {func(e *Epoch) { e.StartMulti(&zk.SetDataRequest{Path: "/", Data: make([]byte, 2*smallFrame)}) }, granted / 3},
		"the client library's": {func(e *Epoch) { go func() { _, _, _ = e.Conn().Get("/") }() }, 2 * granted / 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				client := p.open(asked)
				p.greet(1, granted) // and reads no more
				e, err := client.Epoch(t.Context())
				require.NoError(t, err)
				began := time.Now()
				go c.write(e)
				second := <-p.dials
				took := time.Since(began) // with the first pause of the back-off
				second.Close()
				closeAll(p, client)
				require.GreaterOrEqual(t, took, c.limit)
				require.LessOrEqual(t, took, c.limit+30*time.Millisecond)
			})
		})
	}
}

// The first heartbeat is due by the timeout that is granted, also if it was planned before that was known.
func TestHeartbeatsKeepAFractionOfTheTimeoutThatWasGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(asked, func(cfg *Config) { cfg.LeaseFraction = 0.2 })
		for _, timeout := range []time.Duration{granted, granted / 2} { // the second server grants less
			synctest.Wait() // until the next heartbeat is planned
			conn := p.greet(1, timeout)
			p.serve(conn)
			e, err := c.Epoch(t.Context())
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			require.NoError(t, e.Cause())
			require.Equal(t, timeout, e.Timeout())
			conn.Close()
		}
		go func() { // Close wants to end the session
			for conn := range p.dials {
				conn.Close()
			}
		}()
		c.Close()
		close(p.dials)
	})
}
