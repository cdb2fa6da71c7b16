package zkconn

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
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

// hanging has a session begin over p, and after that each dial hang until its limit. bounds returns how long each took.
func hanging(p *peer, timeout time.Duration) (c *Client, bounds func() []time.Duration) {
	var mu sync.Mutex // the end of a session dials, too
	var all []time.Duration
	var first atomic.Bool
	c = p.open(timeout, func(cfg *Config) {
		cfg.Servers = []string{"a:1", "b:1", "c:1"}
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if first.CompareAndSwap(false, true) {
				return p.dial(ctx, network, addr)
			}
			began := time.Now()
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(began))
			return nil, ctx.Err()
		}
	})
	return c, func() []time.Duration {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// A round in which all were too slow has the next one take longer. It must leave time for all servers, or one that is back
// does not get its turn before the session ends.
func TestTheAttemptsOfARoundEndBeforeTheSessionDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, bounds := hanging(p, 10*time.Second)
		s := newScript(p, p.greet(1, 10*time.Second))
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		s.conn.Close()
		<-e.Over()
		require.Len(t, bounds(), 6, "the last of the second round is under way")
		c.Close()
	})
}

// A link that was slow once may be slow, but one answer that came late must not have a dark server cost the session.
func TestASlowAnswerGivesAnAttemptNoMoreThanAThirdOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, bounds := hanging(p, 9*time.Second)
		s := newScript(p, p.greet(1, 9*time.Second))
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Millisecond) // after the handshake, of which the clock knows already
		go func() { _ = e.Sync(t.Context(), "/") }()
		xid, _, _ := s.next()
		time.Sleep(2800 * time.Millisecond) // before the library's first ping
		s.reply(xid, 0, jute.AppendText(nil, "/"))
		synctest.Wait()
		s.conn.Close()
		time.Sleep(5 * time.Second)
		require.Equal(t, 3*time.Second, bounds()[0])
		c.Close()
	})
}
