package zktest_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// dialTCP returns a client over TCP that has a session.
func dialTCP(t *testing.T, srv *zktest.Server) *zk.Conn {
	t.Helper()
	ready := make(chan struct{}, 16)
	conn, events, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				ready <- struct{}{}
			}
		}))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	<-ready
	return conn
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestAnyClientCanConnectOverTCP(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	conn := dialTCP(t, srv)
	mustCreate(t, conn, "/n", zk.FlagEphemeral)
	_, _, events, err := conn.GetW("/n")
	require.NoError(t, err)
	srv.Set("/n", []byte("x"))
	require.Equal(t, zk.EventNodeDataChanged, (<-events).Type)
	require.Equal(t, "x", string(node(t, srv, "/n").Data))
}

func TestARestartKeepsThePort(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	addr := srv.Addr()
	conn := dialTCP(t, srv)
	mustCreate(t, conn, "/n", 0)
	srv.Stop()
	_, err := net.Dial("tcp", addr)
	require.Error(t, err, "a stopped server refuses")
	srv.Restart()
	require.Equal(t, addr, srv.Addr())
	require.Equal(t, "imok", word(t, srv, "ruok"))
	require.NoError(t, srv.WaitFor(t.Context(), func() bool {
		return len(srv.Sessions()) == 1 && srv.Sessions()[0].Connected
	}))
	_, _, err = conn.Exists("/n")
	require.NoError(t, err)

	allow := srv.Refuse()
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	allow()
	require.Equal(t, "imok", word(t, srv, "ruok"))
}

// word sends a four-letter word and returns the answer.
func word(t *testing.T, srv *zktest.Server, w string) string {
	t.Helper()
	c, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte(w))
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(answer)
}

func TestFourLetterWordsCountUnderTheRealNames(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	conn := dialTCP(t, srv)
	mustCreate(t, conn, "/n", zk.FlagEphemeral)
	_, _, _, err := conn.GetW("/n")
	require.NoError(t, err)
	values := map[string]string{}
	for _, line := range strings.Split(word(t, srv, "mntr"), "\n") {
		k, v, _ := strings.Cut(line, "\t")
		values[k] = v
	}
	require.True(t, strings.HasPrefix(values["zk_version"], "3.8.0"))
	for k, want := range map[string]string{
		"zk_server_state": "standalone", "zk_num_alive_connections": "2", "zk_outstanding_requests": "0",
		"zk_znode_count": "6", "zk_watch_count": "1", "zk_ephemerals_count": "1", "zk_global_sessions": "1",
		"zk_packets_received": "4", // connect, create, getData, mntr
	} {
		require.Equal(t, want, values[k], k)
	}
	require.Contains(t, values, "zk_packets_sent")
	require.Contains(t, values, "zk_avg_latency")
	require.Contains(t, values, "zk_approximate_data_size")
	require.Contains(t, word(t, srv, "srvr"), "Mode: standalone\nNode count: 6\n")
	require.Contains(t, word(t, srv, "stat"), "Clients:\n /127.0.0.1:")
}

func TestOneSideOfAPipeCanBeServed(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, server := net.Pipe()
	srv.ServeConn(server)
	_, err := client.Write([]byte("ruok"))
	require.NoError(t, err)
	answer, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer))
}
