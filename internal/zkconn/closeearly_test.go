package zkconn

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// No other client can end that session: only the answer has its id and password.
func TestCloseEndsASessionThatAServerIsAboutToMake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(10 * time.Second)
		conn := <-p.dials
		_, err := readFrame(conn, 1024)
		require.NoError(t, err)
		go c.Close()
		time.Sleep(handshakeGrace - time.Millisecond) // the answer is on its way
		p.write(conn, connectReplyBody(1, 10*time.Second))
		xid, op, _ := p.request(conn)
		require.EqualValues(t, opClose, op)
		p.write(conn, answer(xid, 0, nil))
		conn.Close()
		c.Close()
		require.Empty(t, p.dials, "nothing remains that another connection would have to end")
	})
}

func TestCloseWaitsOnlyAMomentForASessionOfAServerThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(10 * time.Second)
		conn := <-p.dials
		_, err := readFrame(conn, 1024)
		require.NoError(t, err)
		began := time.Now()
		c.Close()
		require.Less(t, time.Since(began), handshakeGrace+10*time.Millisecond)
		conn.Close()
	})
}

func TestCloseDoesNotWaitForAServerThatHasHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(10 * time.Second)
		conn := <-p.dials
		_, err := readFrame(conn, 1024)
		require.NoError(t, err)
		began := time.Now()
		time.AfterFunc(10*time.Millisecond, func() { conn.Close() })
		c.Close()
		require.Less(t, time.Since(began), 20*time.Millisecond)
		require.NotContains(t, fmt.Sprint(c.LastError()), "failed", "the client had given up")
	})
}

// Close would not wait for its answer.
func TestNoSessionIsAskedForOnceCloseHasBegun(t *testing.T) {
	theirs, ours := net.Pipe()
	defer ours.Close()
	c := newClient(Config{Timeout: 10 * time.Second})
	w := newWire(theirs, &c.newTenure(1).session, nil, "zk", time.Now().Add(10*time.Second))
	c.halt()
	_, err := w.Write(make([]byte, 48))
	require.ErrorIs(t, err, ErrClosed)
}
