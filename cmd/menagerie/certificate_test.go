//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates, and has them in files.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // of its certificate
}

// identity is a certificate with its key, in files.
type identity struct{ cert, key, both string }

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	plan := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	a.key, der = sign(t, plan, plan, nil)
	var err error
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.file = a.write(t, "ca.pem", block("CERTIFICATE", der))
	return a
}

// issue makes a certificate for a name, and for 127.0.0.1 if that is a server's.
func (a *authority) issue(t *testing.T, name string) identity {
	t.Helper()
	plan := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "localhost" {
		plan.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	key, der := sign(t, plan, a.cert, a.key)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	c, k := block("CERTIFICATE", der), block("PRIVATE KEY", secret)
	return identity{
		cert: a.write(t, name+".crt", c), key: a.write(t, name+".key", k), both: a.write(t, name+".pem", append(k, c...)),
	}
}

func sign(t *testing.T, plan, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if signer == nil {
		signer = key
	}
	plan.SerialNumber = big.NewInt(time.Now().UnixNano())
	plan.NotBefore, plan.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, plan, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	return key, der
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (a *authority) write(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

// serveTLS has a server speak TLS on another port, too, and wants a certificate of ours if need is set.
func (a *authority) serveTLS(t *testing.T, s *server, need bool) (addr string) {
	t.Helper()
	config := a.server(t)
	if !need {
		config.ClientAuth = tls.NoClientCert
	}
	return serveBy(t, s, config)
}

// server is the configuration of a server that wants a certificate of ours.
func (a *authority) server(t *testing.T) *tls.Config {
	t.Helper()
	id := a.issue(t, "localhost")
	pair, err := tls.LoadX509KeyPair(id.cert, id.key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func serveBy(t *testing.T, s *server, config *tls.Config) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(conn)
		}
	}()
	return l.Addr().String()
}

func TestCertificatesAreReadAgainAtEachConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	before, after := newAuthority(t), newAuthority(t)
	var config atomic.Pointer[tls.Config]
	config.Store(before.server(t))
	addr := serveBy(t, s, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return config.Load(), nil }})
	id, next := before.issue(t, "client"), after.issue(t, "client")
	enough := filepath.Join(t.TempDir(), "enough")
	p := start(t, "lock", "/a", "-vv", "--servers", addr, "--tls-ca", before.file, "--tls-cert", id.cert, "--tls-key", id.key,
		"--", "sh", "-c", `until test -e "$0"; do sleep 0.05; done`, enough)
	s.queued(t, "/a", 1)
	for from, to := range map[string]string{after.file: before.file, next.cert: id.cert, next.key: id.key} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, data, 0o600))
	}
	config.Store(after.server(t))
	for _, c := range s.Sessions() {
		s.Disconnect(c.ID)
	}
	p.complains("menagerie: disconnected: ")
	require.Eventually(t, func() bool { return strings.Count(p.stderr.String(), "menagerie: connected, server ") == 2 }, patience, pause, "%s", lazy{&p.stderr})
	require.NoError(t, os.WriteFile(enough, nil, 0o600))
	p.finished()
	require.NotContains(t, p.stderr.String(), "cannot connect", "the first attempt succeeds")
}
