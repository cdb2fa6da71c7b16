package zkconn

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// probing runs serve for the only connection to a server, and returns what OpenProbe does.
func probing(t *testing.T, serve func(p *peer, conn net.Conn), then func(p *Probe, err error)) {
	synctest.Test(t, func(t *testing.T) {
		peer := newPeer(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn := <-peer.dials
			defer conn.Close()
			serve(peer, conn)
		}()
		p, err := OpenProbe(ctx, Config{Timeout: 10 * time.Second, Dial: peer.dial}, "peer:2181", 5*time.Second)
		then(p, err)
		cancel()
		<-served
	})
}

func TestAProbeIsASessionOfOneConnection(t *testing.T) {
	var ops []int32
	probing(t, func(p *peer, conn net.Conn) {
		p.answerHello(conn, 7, 4*time.Second)
		for _, code := range []int32{0, codeNoAuth} {
			xid, op, _ := p.request(conn)
			ops = append(ops, op)
			p.write(conn, answer(xid, code, nil))
		}
		_, op, _ := p.request(conn)
		ops = append(ops, op)
	}, func(p *Probe, err error) {
		require.NoError(t, err)
		require.EqualValues(t, 7, p.ID)
		require.Equal(t, 4*time.Second, p.Timeout)
		require.NoError(t, p.Ask())
		require.ErrorContains(t, p.Ask(), "code -102")
		p.Close()
	})
	require.Equal(t, []int32{opExists, opExists, opClose}, ops)
}

func TestAProbeSaysWhyThereIsNoSession(t *testing.T) {
	hello := func(p *peer, conn net.Conn) {
		_, err := readFrame(conn, 1024)
		require.NoError(p.t, err)
	}
	for want, serve := range map[string]func(*peer, net.Conn){
		"it accepted the connection, then closed it: is there no quorum": hello,
		"the server refuses to open a session":                           func(p *peer, c net.Conn) { p.answerHello(c, 0, 0) },
		"malformed connect reply: ":                                      func(p *peer, c net.Conn) { hello(p, c); p.write(c, []byte{1}) },
		`not ZooKeeper: it answered "HTTP/1.1 400": correct the port (ZooKeeper's is usually 2181)`: func(p *peer, c net.Conn) {
			hello(p, c)
			_, err := c.Write([]byte("HTTP/1.1 400\r\n"))
			require.NoError(p.t, err)
		},
		"silent: it accepted the connection and gave no answer in 5s: is this ZooKeeper's port, does it want TLS, or does the server hang?": func(p *peer, c net.Conn) {
			hello(p, c)
			_, err := readFrame(c, 1)
			require.Error(p.t, err)
		},
	} {
		probing(t, serve, func(_ *Probe, err error) { require.ErrorContains(t, err, want) })
	}
}
