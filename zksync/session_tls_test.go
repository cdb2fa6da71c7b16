package zksync_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// certificate makes one for name, and the pool that trusts it.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// overTLS serves srv with a certificate for localhost.
func overTLS(t *testing.T, srv *zktest.Server) (addr string, trust *x509.CertPool) {
	cert, pool := certificate(t, "localhost")
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go srv.ServeConn(conn)
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return "localhost:" + port, pool
}

func TestWithTLSVerifiesTheServerByTheHostNameOfItsAddress(t *testing.T) {
	srv := zktest.Run(t)
	addr, trust := overTLS(t, srv)
	s, err := zksync.Connect(t.Context(), addr, zksync.WithTLS(&tls.Config{RootCAs: trust}))
	require.NoError(t, err)
	l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
	require.NoError(t, s.Close())
}

func TestWithTLSRefusesAServerThatItCannotVerify(t *testing.T) {
	srv := zktest.Run(t)
	addr, _ := overTLS(t, srv)
	_, strangers := certificate(t, "localhost")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err := zksync.Connect(ctx, addr, zksync.WithTLS(&tls.Config{RootCAs: strangers}))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, addr)
	require.ErrorContains(t, err, "certificate", "the error says why")
	require.Empty(t, srv.Sessions())
}
