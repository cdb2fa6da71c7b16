package conformance

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/ensemble"
	"github.com/go-menagerie/menagerie/internal/zkserver"
)

// Both servers have the same unit of time and grant the same session timeouts.
const (
	tick       = 500 * time.Millisecond
	maxTimeout = time.Minute
)

// realServer is a ZooKeeper that was started for the test.
type realServer struct {
	t testing.TB
	e *ensemble.Ensemble
}

func startReal(t testing.TB) *realServer {
	t.Helper()
	return &realServer{t: t, e: ensemble.ForTestConfig(t, ensemble.Config{Servers: 1, Tick: tick, MaxSessionTimeout: maxTimeout})}
}

func (s *realServer) dial() (net.Conn, error) {
	return net.DialTimeout("tcp", s.e.Connect(), patience)
}

func (s *realServer) restart() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(s.t, s.e.StopServers())
	require.NoError(s.t, s.e.StartServers(ctx))
}

// ownServer is the server in this process.
type ownServer struct {
	zk *zkserver.Server
}

func startOwn(t testing.TB) *ownServer {
	s := zkserver.New(zkserver.Config{Tick: tick, MaxTimeout: maxTimeout})
	t.Cleanup(s.Close)
	return &ownServer{zk: s}
}

func (s *ownServer) dial() (net.Conn, error) {
	client, server := net.Pipe()
	s.zk.ServeConn(server)
	return client, nil
}

func (s *ownServer) restart() { s.zk.Restart(true) }
