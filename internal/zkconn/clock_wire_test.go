package zkconn

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// lostAt opens a client against a peer that shakes hands and then does what the test
// says, and returns when its session was given up, counted from the handshake.
func lostAt(t *testing.T, timeout time.Duration, then func(p *peer, e *Epoch, conn net.Conn, began time.Time)) (lost time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(timeout)
		conn := p.greet(1, timeout)
		began := time.Now()
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		e.OnOver(func(error) { lost = time.Since(began) })
		then(p, e, conn, began)
		<-e.Over()
		synctest.Wait()
		require.ErrorIs(t, e.Cause(), ErrOver)
		require.False(t, e.Valid())
		go func() { // whatever is dialled from here on is not answered
			for conn := range p.dials {
				conn.Close()
			}
		}()
		c.Close()
		close(p.dials)
	})
	return lost
}

func TestASilentServerEndsTheSessionByOurOwnClock(t *testing.T) {
	at := lostAt(t, 10*time.Second, func(_ *peer, _ *Epoch, conn net.Conn, _ time.Time) {
		go func() { // takes everything, answers nothing
			for {
				if _, err := readFrame(conn, maxFrame); err != nil {
					return
				}
			}
		}()
	})
	require.Equal(t, 9500*time.Millisecond, at)
}

// Servers answer credentials without a look at the session.
func TestCredentialsAreNoSignOfLife(t *testing.T) {
	at := lostAt(t, 10*time.Second, func(p *peer, e *Epoch, conn net.Conn, _ time.Time) {
		go func() { // takes everything, and answers only credentials
			for {
				b, err := readFrame(conn, maxFrame)
				if err != nil {
					return
				}
				r := jute.Decode(b)
				if xid, op := r.Int32(), r.Int32(); op == opAuth {
					p.write(conn, answer(xid, 0, nil))
				}
			}
		}()
		time.Sleep(5 * time.Second)
		require.NoError(t, e.conn.AddAuth("digest", []byte("ann:secret")))
	})
	require.Equal(t, 9500*time.Millisecond, at)
}

func TestASlowAnswerProvesTheSessionAliveFromWhenItsRequestWasSent(t *testing.T) {
	at := lostAt(t, 10*time.Second, func(p *peer, e *Epoch, conn net.Conn, began time.Time) {
		time.Sleep(time.Second)
		go func() { _, _, _ = e.Exists(context.Background(), "/a") }()
		xid, op, _ := p.request(conn)
		require.EqualValues(t, opExists, op)
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Second) // before the client's first ping
		p.write(conn, answer(xid, 0, make([]byte, jute.StatSize)))
		go func() {
			for {
				if _, err := readFrame(conn, maxFrame); err != nil {
					return
				}
			}
		}()
	})
	require.Equal(t, 10500*time.Millisecond, at)
}

func TestWatchEventsProveNothing(t *testing.T) {
	at := lostAt(t, 10*time.Second, func(p *peer, _ *Epoch, conn net.Conn, _ time.Time) {
		go func() {
			for {
				if _, err := readFrame(conn, maxFrame); err != nil {
					return
				}
			}
		}()
		event := jute.AppendInt32(jute.AppendInt32(nil, eventData), 3)
		event = jute.AppendText(event, "/a")
		for range 5 {
			time.Sleep(time.Second)
			p.write(conn, answer(xidEvent, 0, event))
		}
	})
	require.Equal(t, 9500*time.Millisecond, at)
}

func TestASessionExpiredInAnAnswerEndsTheEpochAtOnce(t *testing.T) {
	at := lostAt(t, 10*time.Second, func(p *peer, e *Epoch, conn net.Conn, _ time.Time) {
		time.Sleep(time.Second)
		done := make(chan error, 1)
		go func() { done <- e.Sync(context.Background(), "/") }()
		xid, _, _ := p.request(conn)
		p.write(conn, answer(xid, codeSessionExpired, nil))
		require.ErrorIs(t, <-done, ErrOver)
	})
	require.Equal(t, time.Second, at)
}

// Servers answer a transaction with success; what became of it stands in the results.
func TestASessionExpiredInATransactionEndsTheEpochAtOnce(t *testing.T) {
	at := lostAt(t, 10*time.Second, func(p *peer, e *Epoch, conn net.Conn, _ time.Time) {
		time.Sleep(time.Second)
		done := make(chan error, 1)
		go func() {
			_, err := e.StartMulti(&zk.DeleteRequest{Path: "/a"}, &zk.DeleteRequest{Path: "/b"}).Wait(context.Background(), e)
			done <- err
		}()
		xid, _, _ := p.request(conn)
		body := jute.AppendInt32(appendOpHeader(nil, opError, 0), codeSessionExpired)
		body = jute.AppendInt32(appendOpHeader(body, opError, 0), -2)
		p.write(conn, answer(xid, 0, appendOpHeader(body, -1, 1)))
		require.ErrorIs(t, <-done, ErrOver)
	})
	require.Equal(t, time.Second, at)
}

func TestPingsKeepASessionAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(3 * time.Second)
		p.serve(p.greet(1, 3*time.Second))
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.True(t, e.Valid())
		c.Close()
	})
}

func TestALeaseFractionHasPingsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(9*time.Second, func(cfg *Config) { cfg.LeaseFraction = 0.2 })
		conn := p.greet(1, 9*time.Second)
		p.serve(conn)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.True(t, e.Valid(), "the client's own pings come every 3 s, the lease lives 1.8 s")
		c.Close()
	})
}
