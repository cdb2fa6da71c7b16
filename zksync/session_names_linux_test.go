package zksync_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// nameServer answers each question for the names of .test, after a delay, with the same addresses. It is
// the name server of this process until the test ends.
type nameServer struct {
	delay     time.Duration
	addresses [][4]byte
	questions atomic.Int32
}

func (n *nameServer) run(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			b := make([]byte, 512)
			size, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			time.AfterFunc(n.delay, func() { _, _ = l.WriteTo(n.answer(b[:size]), from) })
		}
	}()
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", l.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = old })
}

// answer has the header and the question of q, and the addresses if it asks for those.
func (n *nameServer) answer(q []byte) []byte {
	const header, ipv4 = 12, 1
	end := header
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	end += 5
	a := append([]byte(nil), q[:end]...)
	binary.BigEndian.PutUint16(a[2:], 0x8180) // an answer
	binary.BigEndian.PutUint64(a[4:], 1<<48)  // one question, and nothing else yet
	if binary.BigEndian.Uint16(q[end-4:]) != ipv4 {
		return a
	}
	n.questions.Add(1)
	a[7] = byte(len(n.addresses))
	for _, address := range n.addresses {
		a = append(a, 0xc0, header, 0, ipv4, 0, 1, 0, 0, 0, 1, 0, 4)
		a = append(a, address[:]...)
	}
	return a
}

// silent takes connections, and says nothing.
func silent(t *testing.T, addr string) {
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			if c, err := l.Accept(); err != nil {
				return
			} else {
				t.Cleanup(func() { c.Close() })
			}
		}
	}()
}

// All of 127.0.0.0/8 is this machine on Linux, and only there. Only one of the three servers behind one name is of use. The name server is slower than an attempt may be.
func TestEachServerBehindANameIsReachedThroughASlowNameServer(t *testing.T) {
	n := &nameServer{delay: 700 * time.Millisecond, addresses: [][4]byte{{127, 0, 0, 2}, {127, 0, 0, 3}, {127, 0, 0, 4}}}
	n.run(t)
	srv := zktest.RunAddr(t, "127.0.0.4:0")
	_, port, err := net.SplitHostPort(srv.Addr())
	require.NoError(t, err)
	silent(t, "127.0.0.2:"+port)
	silent(t, "127.0.0.3:"+port)

	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = zksync.Connect(short, "zk-headless.test.:"+port, zksync.WithTimeout(3*time.Second))
	require.ErrorContains(t, err, "looking up zk-headless.test. takes ")

	s, err := zksync.Connect(t.Context(), "zk-headless.test.:"+port, zksync.WithTimeout(3*time.Second))
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, int32(2), n.questions.Load(), "once by each session")
}
