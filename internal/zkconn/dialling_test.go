package zkconn

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// dialled notes when and what was dialled, and what becomes of it.
type dialled struct {
	began time.Time
	mu    sync.Mutex
	at    []time.Duration
	addr  []string
}

func (d *dialled) note(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, time.Since(d.began))
	d.addr = append(d.addr, addr)
}

func TestAServerThatAcceptsAndSaysNothingIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		began := time.Now()
		c := p.open(6 * time.Second)
		first := <-p.dials
		_, err := readFrame(first, 1024) // the hello, and no answer
		require.NoError(t, err)
		second := <-p.dials
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second, "half the timeout with one server")
		require.Less(t, time.Since(began), 3500*time.Millisecond)
		p.answerHello(second, 1, 6*time.Second)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, e.ID())
		second.Close()
		closeAll(p, c)
	})
}

func TestDialsThatFailAreSpacedAndNeverFarApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialled{began: time.Now()}
		c := Open(Config{Servers: []string{"a:1", "b:1", "c:1"}, Timeout: 10 * time.Second,
			Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
				d.note(addr)
				return nil, errors.New("refused")
			}})
		time.Sleep(time.Minute)
		c.Close()
		require.ElementsMatch(t, []string{"a:1", "b:1", "c:1"}, d.addr[:3], "every server gets a try")
		require.Equal(t, make([]time.Duration, 3), d.at[:3], "at once")
		for i := 4; i < len(d.at) && d.at[i] < time.Minute; i++ {
			gap := d.at[i] - d.at[i-1]
			require.Greater(t, gap, 5*time.Millisecond, "no hot loop")
			require.Less(t, gap, time.Second, "no stall")
		}
		require.Less(t, len(d.at), 60*30)
		require.Greater(t, len(d.at), 60)
	})
}

func TestALoneServerIsDialledAgainAtOnceAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(10 * time.Second)
		conn := p.greet(1, 10*time.Second)
		p.serve(conn)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		_, _, err = e.Exists(t.Context(), "/")
		require.NoError(t, err)
		lost := time.Now()
		conn.Close()
		again := p.greet(1, 10*time.Second)
		require.Less(t, time.Since(lost), 50*time.Millisecond)
		require.NoError(t, e.Await(t.Context()))
		require.NoError(t, e.Cause())
		again.Close()
		closeAll(p, c)
	})
}

// A server that greets and then drops the connection must not be dialled in a spin.
func TestAGreetingAloneDoesNotResetTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		d := &dialled{began: time.Now()}
		c := p.open(10*time.Second, func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, n, addr string) (net.Conn, error) {
				d.note(addr)
				return p.dial(ctx, n, addr)
			}
		})
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case conn := <-p.dials:
					if _, err := readFrame(conn, 1024); err == nil {
						_, _ = conn.Write(jute.AppendFrame(nil, connectReplyBody(1, 10*time.Second)))
					}
					conn.Close()
				case <-stop:
					return
				}
			}
		}()
		time.Sleep(9 * time.Second)
		c.Close()
		close(stop)
		require.Less(t, len(d.at), 300)
		require.Greater(t, len(d.at), 20)
	})
}

func TestNamesGoToTheDialerUnresolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialled{began: time.Now()}
		c := Open(Config{Servers: []string{"zk.example:2181"}, Timeout: time.Second,
			Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
				require.Equal(t, "tcp", network)
				d.note(addr)
				return nil, errors.New("refused")
			}})
		time.Sleep(time.Second)
		c.Close()
		require.NotEmpty(t, d.addr)
		for _, a := range d.addr {
			require.Equal(t, "zk.example:2181", a)
		}
	})
}

func TestADialThatHangsEndsWithItsLimitAndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bounds []time.Duration
		c := Open(Config{Servers: []string{"a:1"}, Timeout: 4 * time.Second,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				began := time.Now()
				<-ctx.Done()
				bounds = append(bounds, time.Since(began))
				return nil, ctx.Err()
			}})
		time.Sleep(20 * time.Second)
		closing := time.Now()
		c.Close()
		require.Less(t, time.Since(closing), 100*time.Millisecond, "there is no session to end")
		require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, bounds[:4])
	})
}
