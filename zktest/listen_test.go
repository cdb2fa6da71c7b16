package zktest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAServerListensWhereItIsTold(t *testing.T) {
	t.Parallel()
	first := zktest.Run(t)
	addr := first.Addr()
	first.Close() // the port is free again

	srv, err := zktest.StartAddr(addr)
	require.NoError(t, err)
	require.Equal(t, addr, srv.Addr())
	require.Equal(t, "imok", word(t, srv, "ruok"))
	_, err = zktest.StartAddr(addr)
	require.ErrorContains(t, err, "zktest: listen tcp "+addr)
	tb := &fakeTB{TB: t}
	require.Panics(t, func() { zktest.RunAddr(tb, addr) })
	require.Contains(t, tb.errors[0], addr)
	require.Contains(t, tb.errors[0], "Run and Addr take a free port")
	tb.finish()

	srv.Restart()
	require.Equal(t, addr, srv.Addr())
	require.Equal(t, "imok", word(t, srv, "ruok"))
	srv.Close()
	srv = zktest.RunAddr(t, addr)
	require.Equal(t, "imok", word(t, srv, "ruok"))
}

// A program may set the server up before its first client comes.
func TestAServerMayListenLaterOnItsOnlyPort(t *testing.T) {
	t.Parallel()
	free := zktest.Run(t)
	addr := free.Addr()
	free.Close()

	srv := zktest.Run(t)
	srv.SetZxid(1 << 32)
	require.NoError(t, srv.Listen(addr))
	require.Equal(t, addr, srv.Addr())
	require.Contains(t, word(t, srv, "srvr"), "Zxid: 0x100000000\n")
	require.EqualError(t, srv.Listen("127.0.0.1:0"), `zktest: Listen("127.0.0.1:0"): the server has the port `+addr+` already`)
	require.Equal(t, addr, srv.Addr())
	allow := srv.Refuse()
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
	allow()
	require.Equal(t, "imok", word(t, srv, "ruok"))
}

// A client that looks for a server that is down could get its port as that of its own end.
func TestNoClientGetsThePortOfAServerThatIsDown(t *testing.T) {
	t.Parallel()
	for _, addr := range []func(*zktest.Server) string{
		(*zktest.Server).Addr,
		func(s *zktest.Server) string { s.Stop(); return s.Addr() },
	} {
		_, port, err := net.SplitHostPort(addr(zktest.Run(t)))
		require.NoError(t, err)
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		if low := loopback.Outgoing(); low > 4096 { // a machine may leave no room below it
			require.Less(t, number, low)
		}
	}
}

func TestAPortThatIsTakenDuringARestartFailsTheTest(t *testing.T) {
	t.Parallel()
	tb := &fakeTB{TB: t}
	srv := zktest.Run(tb)
	addr := srv.Addr()
	srv.Stop()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	defer l.Close()
	srv.Restart()
	require.Len(t, tb.errors, 1)
	require.Contains(t, tb.errors[0], "somebody has taken the port meanwhile")
	tb.finish()
}

func TestConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	conn := dialTCP(t, srv)
	require.Equal(t, 1, srv.Connections())
	srv.Disconnect(conn.SessionID())
	srv.Wait(t, "the client is back", func() bool { return srv.TotalConnections() == 2 && srv.Sessions()[0].Connected })
	require.Equal(t, 1, srv.Connections())
}

func TestAListenerOfAnyKindCanBeServed(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	socket := filepath.Join(t.TempDir(), "zk")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("ruok"))
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer))
	srv.Close()
	require.NoError(t, <-served)
}

// certificate returns one for the loopback address, and a pool in which it is trusted.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestThePortCanSpeakTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	srv := zktest.Run(t, zktest.WithTLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
	dial := func(network, addr string, _ time.Duration) (net.Conn, error) { // the client allows a second, however busy the machine is
		return tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, network, addr, &tls.Config{RootCAs: pool})
	}
	conn, events, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithDialer(dial), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer func() {
		conn.Close()
		for range events {
		}
	}()
	mustCreate(t, conn, "/n", zk.FlagEphemeral)
	srv.Disconnect(conn.SessionID())
	srv.Wait(t, "the client is back", func() bool { return srv.TotalConnections() >= 2 && srv.Sessions()[0].Connected })
	_, err = conn.Set("/n", []byte("x"), -1)
	require.NoError(t, err)
	zktest.CheckNode(t, srv, "/n", []byte("x"))

	plain, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Write([]byte("ruok\r\n"))
	require.NoError(t, err)
	answer, _ := io.ReadAll(plain)
	require.NotContains(t, string(answer), "imok", "who does not speak TLS is not served")
	require.NotNil(t, srv.Connect(t, 10*time.Second), "in memory it is plain")
}

func TestTLSNeedsACertificate(t *testing.T) {
	t.Parallel()
	_, err := zktest.StartAddr("127.0.0.1:0", zktest.WithTLS(&tls.Config{}))
	require.ErrorContains(t, err, "WithTLS: the configuration has no certificate")
}

func TestAddrInABubbleFailsTheTestAndSaysWhatToUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		require.Panics(t, func() { srv.Addr() }, "fatal: a client of that address would have a socket, and the bubble deadlock")
		require.Len(t, tb.errors, 1)
		require.Contains(t, tb.errors[0], "Server.Connect, Server.Session or Server.Dial")
		tb.finish()
	})
}

func TestAServerThatIsDownHasAPortThatIsClosed(t *testing.T) {
	t.Parallel()
	for _, down := range []func(*zktest.Server) (up func()){
		func(srv *zktest.Server) func() { srv.Stop(); return srv.Restart },
		func(srv *zktest.Server) func() { return srv.Refuse() },
	} {
		srv := zktest.Run(t)
		up := down(srv)
		addr := srv.Addr()
		_, err := net.Dial("tcp", addr)
		require.ErrorContains(t, err, "connection refused", addr)
		up()
		require.Equal(t, addr, srv.Addr())
		require.Equal(t, "imok", word(t, srv, "ruok"))
	}
}
