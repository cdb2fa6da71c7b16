package zkconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/testing/loopback"
)

// firstFailure connects to addr and returns the line that is logged of the first failed attempt.
func firstFailure(t *testing.T, addr string, secure *tls.Config) string {
	t.Helper()
	lines := make(chan string, 1)
	cfg := Config{
		Servers: []string{addr}, Timeout: 10 * time.Second, // half of it for an attempt
		Log: logs.New(slog.New(slog.NewTextHandler(writerFunc(func(b []byte) {
			select {
			case lines <- string(b):
			default:
			}
		}), &slog.HandlerOptions{Level: slog.LevelWarn}))),
	}
	if secure != nil {
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			raw, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			conn := tls.Client(raw, secure)
			if err := conn.HandshakeContext(ctx); err != nil {
				raw.Close()
				return nil, &TLSError{Err: err}
			}
			return conn, nil
		}
	}
	c := Open(cfg)
	defer c.Close()
	line := <-lines
	require.Contains(t, line, "level=WARN")
	require.Contains(t, line, `msg="cannot connect"`)
	require.Contains(t, line, "server="+addr)
	return line
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// listening serves each connection that comes with f, and closes it.
func listening(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// tlsServer is one for 127.0.0.1, and the pool that trusts it.
func tlsServer(t *testing.T, change func(*tls.Config)) (addr string, trust *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	trust = x509.NewCertPool()
	trust.AddCert(leaf)
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	change(config)
	addr = listening(t, func(conn net.Conn) {
		s := tls.Server(conn, config)
		if s.Handshake() == nil {
			hold(s)
		}
	})
	return addr, trust
}

// failing is a server that no session can be had of, and what is logged of it.
type failing struct {
	name, says string
	serve      func(t *testing.T) (addr string, secure *tls.Config)
}

var failingWithoutTLS = []failing{
	{"refused", "connection refused: no server listens there", func(t *testing.T) (string, *tls.Config) {
		addr, free, err := loopback.Refusing()
		require.NoError(t, err)
		t.Cleanup(free)
		return addr, nil
	}},
	{"accepted, then closed", "it accepted the connection, then closed it: is there no quorum, is this a port for TLS or for other servers (2888, 3888), or has it as many connections from here as its maxClientCnxns allows?", func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(net.Conn) {}), nil
	}},
	{"silent", "silent: it accepted the connection and gave no answer in 5s: is this ZooKeeper's port, does it want TLS, or does the server hang?\"", func(t *testing.T) (string, *tls.Config) {
		return listening(t, hold), nil
	}},
	{"an HTTP server", `not ZooKeeper: it answered \"HTTP/1.1 400 Bad Request\": correct the port (ZooKeeper's is usually 2181)"`, func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}), nil
	}},
	{"a server that speaks first", `not ZooKeeper: it answered \"SSH-2.0-OpenSSH_9.7\": correct the port (ZooKeeper's is usually 2181)"`, func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.7\r\n")
			hold(conn)
		}), nil
	}},
	{"a server of another protocol", "not ZooKeeper: it answered ff 00 00 00 0a: correct the port (ZooKeeper's is usually 2181)", func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(conn net.Conn) {
			_, _ = conn.Write([]byte{0xff, 0, 0, 0, 10})
			hold(conn)
		}), nil
	}},
	{"a TLS server that closes, without TLS", "is this a port for TLS or for other servers (2888, 3888)", func(t *testing.T) (string, *tls.Config) {
		addr, _ := tlsServer(t, unchanged)
		return addr, nil
	}},
	{"a TLS server that sends an alert, without TLS", "it answered with a TLS alert, so this is a port for TLS: use WithTLS, or give its port without TLS\"", func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(conn net.Conn) {
			_, _ = conn.Write([]byte{0x15, 3, 3, 0, 2, 2, 10})
			hold(conn)
		}), nil
	}},
}

var failingWithTLS = []failing{
	{"a plain server, with TLS", "TLS: the server closed the connection during the handshake: is this a port without TLS?", func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) }), &tls.Config{ServerName: "zk"}
	}},
	{"a plain server that talks, with TLS", "TLS: the server answers without TLS: is this its plain port?", func(t *testing.T) (string, *tls.Config) {
		return listening(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			hold(conn)
		}), &tls.Config{ServerName: "zk"}
	}},
	{"a silent server, with TLS", "TLS: silent: no answer to the handshake in 5s", func(t *testing.T) (string, *tls.Config) {
		return listening(t, hold), &tls.Config{ServerName: "zk"}
	}},
	{"a certificate of an unknown authority", "TLS: the server's certificate is refused here: x509: certificate signed by unknown authority: give its authority with WithTLSFiles\"", func(t *testing.T) (string, *tls.Config) {
		addr, _ := tlsServer(t, unchanged)
		return addr, &tls.Config{ServerName: "127.0.0.1", RootCAs: x509.NewCertPool()}
	}},
	{"a certificate for another name", "TLS: the server's certificate is refused here: x509: certificate is valid for 127.0.0.1, not 127.0.0.2: give its name as the ServerName of WithTLS\"", func(t *testing.T) (string, *tls.Config) {
		addr, trust := tlsServer(t, unchanged)
		return addr, &tls.Config{ServerName: "127.0.0.2", RootCAs: trust}
	}},
	{"an expired certificate", "TLS: the server's certificate is refused here: x509: certificate has expired", func(t *testing.T) (string, *tls.Config) {
		addr, trust := tlsServer(t, unchanged)
		return addr, &tls.Config{ServerName: "127.0.0.1", RootCAs: trust, Time: func() time.Time { return time.Now().Add(24 * time.Hour) }}
	}},
	{"a client certificate that is missing", "TLS: the server refuses the handshake: remote error: tls: certificate required", func(t *testing.T) (string, *tls.Config) {
		addr, trust := tlsServer(t, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
		return addr, &tls.Config{ServerName: "127.0.0.1", RootCAs: trust}
	}},
	{"over TLS silent", "silent: it accepted the connection and gave no answer in 5s: is this ZooKeeper's port, or does the server hang?\"", func(t *testing.T) (string, *tls.Config) {
		addr, trust := tlsServer(t, unchanged)
		return addr, &tls.Config{ServerName: "127.0.0.1", RootCAs: trust}
	}},
	{"over TLS accepted, then closed", "it accepted the connection, then closed it: is there no quorum, is this a port for other servers (2888, 3888), or has it as many connections from here as its maxClientCnxns allows?", func(t *testing.T) (string, *tls.Config) {
		var config *tls.Config
		_, trust := tlsServer(t, func(c *tls.Config) { config = c })
		addr := listening(t, func(conn net.Conn) {
			s := tls.Server(conn, config)
			_ = s.Handshake()
			_, _ = s.Read(make([]byte, 4096))
			s.Close()
		})
		return addr, &tls.Config{ServerName: "127.0.0.1", RootCAs: trust}
	}},
}

func unchanged(*tls.Config) {}

func TestANameThatIsNotFoundIsAQuestionOfTheName(t *testing.T) {
	for err, want := range map[error]string{
		&net.DNSError{Err: "no such host", Name: "zk", IsNotFound: true}: "lookup zk: no such host: is the name right?",
		&net.DNSError{Err: "server misbehaving", Name: "zk"}:             "lookup zk: server misbehaving: does the name server work?",
	} {
		for _, diagnosed := range []error{diagnoseLookUp(err, "zk", time.Second), diagnoseDial(err, time.Second)} {
			text, fix := Explain(diagnosed)
			require.Equal(t, []string{want, "correct the name, or look at the name server"}, []string{text, fix})
			require.EqualError(t, diagnosed, want)
			require.ErrorIs(t, diagnosed, err)
		}
	}
}

func TestATextWithItsFixIsTakenApart(t *testing.T) {
	err := notZooKeeper([]byte("SSH-2.0\r\n"))
	text, fix := Explain(err)
	require.Equal(t, err.Error(), text+": "+fix)
	require.Equal(t, "correct the port (ZooKeeper's is usually 2181)", fix)
	text, fix = Explain(io.EOF)
	require.Equal(t, []string{"EOF", ""}, []string{text, fix})
}

func TestTheFirstFailedAttemptSaysWhatIsWrong(t *testing.T) {
	for _, c := range slices.Concat(failingWithoutTLS, failingWithTLS) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr, secure := c.serve(t)
			line := firstFailure(t, addr, secure)
			require.Contains(t, strings.ReplaceAll(line, `\\`, `\`), c.says)
		})
	}
}
