package ensemble_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

// connect opens a session on the given servers that ends with the test.
func connect(t testing.TB, servers string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(servers, ","), 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-time.After(time.Minute):
			require.Fail(t, "no session", servers)
		}
	}
}

func create(t testing.TB, conn *zk.Conn, path string) {
	t.Helper()
	_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

func TestOneServerServesClientsUntilItIsClosed(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	require.Len(t, e.Servers(), 1)
	s := e.Servers()[0]
	require.Equal(t, s.Addr(), e.Connect())
	mode, err := s.Mode(t.Context())
	require.NoError(t, err)
	require.Equal(t, ensemble.ModeStandalone, mode)
	leader, err := e.Leader(t.Context())
	require.NoError(t, err)
	require.Same(t, s, leader)
	create(t, connect(t, e.Connect()), "/a")

	require.NotZero(t, s.Pid())
	require.NoError(t, e.Close())
	require.Zero(t, s.Pid())
	_, err = net.Dial("tcp", s.Addr())
	require.Error(t, err)
	require.NoError(t, e.Close(), "closing twice")
	require.ErrorContains(t, s.Start(t.Context()), "closed")
}

func TestTemporaryFilesAreGoneAfterClose(t *testing.T) {
	ensemble.Require(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	e, err := ensemble.Start(t.Context(), ensemble.Config{})
	require.NoError(t, err)
	files, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Len(t, files, 1)

	require.NoError(t, e.Close())
	files, err = os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestThreeServersElectAnotherLeaderWhenOneIsKilledAndTakeItBack(t *testing.T) {
	e := ensemble.ForTest(t, 3)
	modes := map[ensemble.Mode]int{}
	for _, s := range e.Servers() {
		mode, err := s.Mode(t.Context())
		require.NoError(t, err)
		modes[mode]++
	}
	require.Equal(t, map[ensemble.Mode]int{ensemble.ModeLeader: 1, ensemble.ModeFollower: 2}, modes)

	create(t, connect(t, e.Connect()), "/kept")
	first, err := e.Leader(t.Context())
	require.NoError(t, err)
	pid := first.Pid()
	require.NoError(t, first.Kill())
	require.Zero(t, first.Pid())
	second, err := e.Leader(t.Context())
	require.NoError(t, err)
	require.NotSame(t, first, second)

	require.NoError(t, first.Start(t.Context()))
	require.NotEqual(t, pid, first.Pid())
	mode, err := first.Mode(t.Context())
	require.NoError(t, err)
	require.Equal(t, ensemble.ModeFollower, mode)
	conn := connect(t, first.Addr())
	_, err = conn.Sync("/kept")
	require.NoError(t, err)
	found, _, err := conn.Exists("/kept")
	require.NoError(t, err)
	require.True(t, found)
}

func TestAllServersTogetherStopAndStartAgain(t *testing.T) {
	e := ensemble.ForTest(t, 3)
	create(t, connect(t, e.Connect()), "/kept")
	before := e.Connect()
	require.NoError(t, e.StopServers())
	for _, s := range e.Servers() {
		require.Zero(t, s.Pid())
	}
	require.NoError(t, e.StartServers(t.Context()))
	require.Equal(t, before, e.Connect())
	found, _, err := connect(t, e.Connect()).Exists("/kept")
	require.NoError(t, err)
	require.True(t, found)
}

func TestAPausedServerAnswersOnlyAfterItIsResumed(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	s := e.Servers()[0]
	require.NoError(t, s.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.FourLetter(ctx, "ruok")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, s.Resume())
	answer, err := s.FourLetter(t.Context(), "ruok")
	require.NoError(t, err)
	require.Equal(t, "imok", answer)
}

func TestAPausedServerCanBeStopped(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	s := e.Servers()[0]
	require.NoError(t, s.Pause())
	require.NoError(t, s.Stop())
	require.Zero(t, s.Pid())
	require.ErrorContains(t, s.Pause(), "not running")
	require.NoError(t, s.Stop(), "stopping twice")
	require.NoError(t, s.Kill(), "killing a stopped server")
}

func TestARunningServerCannotBeStartedAgain(t *testing.T) {
	s := ensemble.ForTest(t, 1).Servers()[0]
	pid := s.Pid()
	require.ErrorContains(t, s.Start(t.Context()), "already running")
	require.Equal(t, pid, s.Pid())
}

func TestSessionTimeoutsRangeFromTwoTicksToTheConfiguredMaximum(t *testing.T) {
	for name, c := range map[string]struct {
		config   ensemble.Config
		min, max string
	}{
		"by default":    {ensemble.Config{}, "minSessionTimeout=1000", "maxSessionTimeout=60000"},
		"as configured": {ensemble.Config{Tick: 200 * time.Millisecond, MaxSessionTimeout: 3 * time.Second}, "minSessionTimeout=400", "maxSessionTimeout=3000"},
	} {
		t.Run(name, func(t *testing.T) {
			s := ensemble.ForTestConfig(t, c.config).Servers()[0]
			conf, err := s.FourLetter(t.Context(), "conf")
			require.NoError(t, err)
			require.Contains(t, conf, c.min+"\n")
			require.Contains(t, conf, c.max+"\n")
		})
	}
}

func TestMntrCountsWhatClientsDo(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	s := e.Servers()[0]
	conn := connect(t, e.Connect())
	_, err := conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, _, _, err = conn.ExistsW("/e")
	require.NoError(t, err)
	counters, err := s.Mntr(t.Context())
	require.NoError(t, err)
	require.Equal(t, "standalone", counters["zk_server_state"])
	require.Equal(t, "1", counters["zk_ephemerals_count"])
	require.Equal(t, "1", counters["zk_watch_count"])
	require.NotEmpty(t, counters["zk_packets_received"])
}

func TestServersGetTheConfiguredSystemProperties(t *testing.T) {
	e := ensemble.ForTestConfig(t, ensemble.Config{Properties: map[string]string{
		"zookeeper.extendedTypesEnabled": "true",
	}})
	_, err := connect(t, e.Connect()).CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour)
	require.NoError(t, err, "without the property it is answered: unimplemented")
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	for name, cfg := range map[string]ensemble.Config{
		"two servers":       {Servers: 2},
		"negative servers":  {Servers: -1},
		"no tick":           {Tick: time.Microsecond},
		"timeouts reversed": {MaxSessionTimeout: time.Millisecond},
		"negative heap":     {HeapMB: -1},
		"no property name":  {Properties: map[string]string{"a=b": "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ensemble.Start(t.Context(), cfg)
			require.ErrorContains(t, err, "ensemble: ")
		})
	}
}

func TestAStartEndsWithItsContext(t *testing.T) {
	ensemble.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ensemble.Start(ctx, ensemble.Config{Servers: 3})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var failed *ensemble.StartError
	require.True(t, errors.As(err, &failed))
	require.Equal(t, 3, strings.Count(failed.Logs, "--- server "))
}

func TestAServerThatCannotRunSaysWhyInOneLine(t *testing.T) {
	ensemble.Require(t)
	_, err := ensemble.Start(t.Context(), ensemble.Config{HeapMB: 1})
	require.ErrorContains(t, err, "heap")
	require.NotContains(t, err.Error(), "\n")
}
