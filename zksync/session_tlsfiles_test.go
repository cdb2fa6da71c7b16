package zksync_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// rotating is a server over TLS, whose certificate and whose trust in clients change.
type rotating struct {
	srv        *zktest.Server
	addr       string
	config     atomic.Pointer[tls.Config]
	ca, cr, ky string // files of the client
}

func newRotating(t *testing.T) *rotating {
	dir := t.TempDir()
	r := &rotating{srv: zktest.Run(t), ca: filepath.Join(dir, "ca.pem"), cr: filepath.Join(dir, "own.crt"), ky: filepath.Join(dir, "own.key")}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.config.Load(), nil },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.srv.ServeConn(conn)
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	r.addr = "localhost:" + port
	return r
}

// rotate gives both sides certificates of new authorities. From then on no older one is of use.
func (r *rotating) rotate(t *testing.T) {
	theirs, _ := certificate(t, "localhost")
	own, _ := certificate(t, "client")
	r.config.Store(&tls.Config{Certificates: []tls.Certificate{theirs}, ClientAuth: tls.RequireAnyClientCert,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if string(raw[0]) != string(own.Certificate[0]) {
				return os.ErrPermission
			}
			return nil
		}})
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	for name, b := range map[string]pem.Block{
		r.ca: {Type: "CERTIFICATE", Bytes: theirs.Certificate[0]}, r.cr: {Type: "CERTIFICATE", Bytes: own.Certificate[0]},
		r.ky: {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&b), 0o600))
	}
}

func TestWithTLSFilesReadsTheFilesAgainAtEachConnection(t *testing.T) {
	r := newRotating(t)
	r.rotate(t)
	s, err := zksync.Connect(t.Context(), r.addr, zksync.WithTLSFiles(r.ca, r.cr, r.ky))
	require.NoError(t, err)
	defer s.Close()
	lease, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
	require.NoError(t, err)
	for range 3 {
		r.rotate(t)
		before := r.srv.TotalConnections()
		r.srv.Disconnect(s.ID())
		_, err := zksync.Contenders(t.Context(), s, "/locks/a")
		require.NoError(t, err)
		require.Equal(t, before+1, r.srv.TotalConnections(), "the first attempt succeeds")
	}
	require.NoError(t, lease.Unlock())
}

// Files are not replaced all at once.
func TestFilesThatDoNotBelongTogetherLeaveTheCertificateOfBefore(t *testing.T) {
	r := newRotating(t)
	r.rotate(t)
	b := &logbook{}
	s, err := zksync.Connect(t.Context(), r.addr, zksync.WithTLSFiles(r.ca, r.cr, r.ky), zksync.WithLogger(b.logger(slog.LevelWarn)))
	require.NoError(t, err)
	defer s.Close()
	for _, spoil := range []func(){
		func() { require.NoError(t, os.WriteFile(r.ky, []byte("half a k"), 0o600)) },
		func() { require.NoError(t, os.Remove(r.ky)) },
		func() { require.NoError(t, os.WriteFile(r.ca, nil, 0o600)) },
	} {
		spoil()
		for range 2 {
			r.srv.Disconnect(s.ID())
			_, err := zksync.Contenders(t.Context(), s, "/locks/a")
			require.NoError(t, err)
		}
	}
	b.mu.Lock()
	lines := b.text.String()
	b.mu.Unlock()
	const msg = `level=WARN msg="certificates cannot be read again; those read before are used" error="`
	require.Regexp(t, "^"+msg+`the files /.*/own.crt and /.*/own.key are not a certificate and its key in PEM form: .*\n`+
		msg+`cannot read the file /.*/own.key: no such file or directory"\n`+
		msg+`the file /.*/ca.pem has no certificate in PEM form .*; cannot read the file /.*/own.key: no such file or directory"\n$`, lines, "once each")
}

func TestWithTLSFilesRefusesFilesThatAreOfNoUse(t *testing.T) {
	r := newRotating(t)
	r.rotate(t)
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for name, c := range map[string]struct{ ca, cert, key, says string }{
		"no file":                   {"", "", "", "WithTLS trusts the authorities of this machine"},
		"a certificate, and no key": {r.ca, r.cr, "", "own.crt and no key; give both"},
		"a key, and no certificate": {r.ca, "", r.ky, "own.key and no certificate; give both"},
		"a missing file":            {missing, "", "", "missing.pem: no such file"},
		"not a certificate":         {r.ky, "", "", "has no certificate in PEM form"},
		"no key":                    {r.ca, r.cr, r.ca, "are not a certificate and its key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := zksync.Connect(t.Context(), r.addr, zksync.WithTLSFiles(c.ca, c.cert, c.key))
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestWithTLSSaysWhatFilesDoNot(t *testing.T) {
	r := newRotating(t)
	r.rotate(t)
	_, port, err := net.SplitHostPort(r.addr)
	require.NoError(t, err)
	files := zksync.WithTLSFiles(r.ca, r.cr, r.ky)
	for _, opts := range [][]zksync.SessionOption{
		{zksync.WithTLS(&tls.Config{ServerName: "localhost"}), files},
		{files, zksync.WithTLS(&tls.Config{ServerName: "localhost", RootCAs: x509.NewCertPool()})},
	} {
		s, err := zksync.Connect(t.Context(), "127.0.0.1:"+port, opts...)
		require.NoError(t, err, "the name is that of the configuration")
		require.NoError(t, s.Close())
	}
}
