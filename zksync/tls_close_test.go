package zksync_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func selfSigned(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(1000000 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// terminator ends TLS in front of a server, and can stop reading, as a frozen process whose buffers are full does.
type terminator struct {
	srv    *zktest.Server
	cert   tls.Certificate
	frozen atomic.Bool
	thawed chan struct{}
}

// dial connects to the server through the terminator.
func (f *terminator) dial(ctx context.Context, network, address string) (net.Conn, error) {
	back, err := f.srv.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	a, b := net.Pipe()
	front := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{f.cert}})
	go func() { _, _ = io.Copy(front, back); b.Close() }()
	go f.pass(front, back)
	return a, nil
}

// pass hands on what the client says, unless it is frozen.
func (f *terminator) pass(front, back net.Conn) {
	defer back.Close()
	buf := make([]byte, 64<<10)
	for {
		f.stand()
		n, err := front.Read(buf)
		f.stand()
		if err != nil {
			return
		}
		if _, err := back.Write(buf[:n]); err != nil {
			return
		}
	}
}

// stand waits for the thaw, if there is frost.
func (f *terminator) stand() {
	if f.frozen.Load() {
		<-f.thawed
	}
}

func (f *terminator) thaw() {
	close(f.thawed)
	f.frozen.Store(false)
}

// Closing a TLS connection writes an alert, which waits five seconds for room.
func TestATLSConnectionThatTakesNothingDoesNotHoldCallersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &terminator{srv: zktest.Run(t), cert: selfSigned(t), thawed: make(chan struct{})}
		s, err := zksync.Connect(context.Background(), "zk:2181", zksync.WithTimeout(30*time.Second), zksync.WithDialer(f.dial),
			zksync.WithTLS(&tls.Config{InsecureSkipVerify: true}))
		require.NoError(t, err)
		m := zksync.NewMutex(s, "/locks/a")
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		synctest.Wait()
		f.frozen.Store(true)
		// One byte frame to get the reader out of its Read and into the freeze.
		go func() { // whatever it takes
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_, _ = zksync.Contenders(ctx, s, "/locks/a")
		}()
		time.Sleep(10 * time.Millisecond)

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		panicked := make(chan any, 1)
		go func() { // the mirror, a moment later: must say false
			time.Sleep(200 * time.Millisecond)
			defer func() { panicked <- recover() }()
			zksync.NewMutex(s, "/locks/b").TryLock()
		}()
		_, err = m.LockContext(ctx)
		took := time.Since(start)
		other := <-panicked
		f.thaw()
		require.Error(t, err)
		require.NoError(t, s.Close())
		assert.LessOrEqual(t, took, 110*time.Millisecond)
		require.Nil(t, other)
	})
}
