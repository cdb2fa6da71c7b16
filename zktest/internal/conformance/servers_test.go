package conformance

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zktest/internal/engine"
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

// settings are what can be different from one pair of servers to another.
type settings struct {
	extended bool          // nodes with a time to live are allowed
	reaping  time.Duration // how often empty containers and old nodes are removed; practically never if zero
}

// never is longer than any test takes.
const never = 24 * time.Hour

func (s settings) interval() time.Duration {
	if s.reaping == 0 {
		return never
	}
	return s.reaping
}

func startReal(t testing.TB, s settings) *realServer {
	t.Helper()
	return &realServer{t: t, e: ensemble.ForTestConfig(t, ensemble.Config{
		Servers: 1, Tick: tick, MaxSessionTimeout: maxTimeout,
		Properties: map[string]string{
			"zookeeper.extendedTypesEnabled":  strconv.FormatBool(s.extended),
			"znode.container.checkIntervalMs": strconv.FormatInt(s.interval().Milliseconds(), 10),
		},
	})}
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

func (s *realServer) setSequence(path string, n int32) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(s.t, s.e.SetSequence(ctx, path, n))
}

// ownServer is the server in this process.
type ownServer struct {
	zk *engine.Server
}

func startOwn(t testing.TB, s settings) *ownServer {
	zk := engine.New(engine.Config{
		Tick: tick, MaxTimeout: maxTimeout, ContainerInterval: s.interval(), ExtendedTypes: s.extended,
	})
	t.Cleanup(zk.Close)
	return &ownServer{zk: zk}
}

func (s *ownServer) dial() (net.Conn, error) {
	client, server := net.Pipe()
	s.zk.ServeConn(server)
	return client, nil
}

func (s *ownServer) restart() { s.zk.Restart(true) }

func (s *ownServer) setSequence(path string, n int32) {
	s.zk.SetSequence(path, n)
	s.restart()
}
