package bench

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// serve runs a server that counts requests as the meter should.
func serve(t testing.TB) (*zktest.Server, string, func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := zktest.Start(zktest.WithHeartbeat(""))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-served })
	return srv, l.Addr().String(), func() int64 {
		return int64(srv.Requests() + srv.RequestsBy(zktest.SetWatches))
	}
}

// config is that of a run of three rounds.
func config(servers string, d time.Duration, all ...Scenario) Config {
	return Config{Servers: servers, Timeout: 10 * time.Second, Peers: Peers(), Scenarios: all, Duration: d, Rounds: 3, Progress: func(Progress) {}}
}

func runWith(t *testing.T, ctx context.Context, cfg Config) ([]Row, error) {
	t.Helper()
	s, err := zksync.Connect(context.Background(), cfg.Servers)
	require.NoError(t, err)
	defer s.Close()
	return Run(ctx, s.Conn(), cfg)
}

func runOn(t *testing.T, ctx context.Context, servers string, d time.Duration, all ...Scenario) ([]Row, error) {
	t.Helper()
	return runWith(t, ctx, config(servers, d, all...))
}

// of is a scenario with a number of clients.
func of(t *testing.T, name string, clients ...int) Scenario {
	t.Helper()
	s, ok := ScenarioNamed(name)
	require.True(t, ok, name)
	s = s.With(clients)
	require.Equal(t, clients, s.Clients)
	return s
}

// slice is one slice on a path that is there.
func slice(t *testing.T, srv *zktest.Server, addr string, s Scenario) Slice {
	t.Helper()
	srv.Load(map[string]string{"/q": ""})
	return Slice{Scenario: s, Clients: s.Clients[0], Duration: 30 * time.Millisecond, Path: "/q", Servers: addr, Timeout: 10 * time.Second}
}

func TestEveryPeerIsMeasuredInEveryScenario(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	rows, err := runOn(t, context.Background(), addr, 60*time.Millisecond, of(t, Uncontended, 1), of(t, Contended, 4))
	require.NoError(t, err)
	require.Len(t, rows, 6)
	for i, r := range rows {
		require.Equal(t, []string{"menagerie", "gozk-lock", "floor"}[i%3], r.Peer)
		require.Equal(t, []string{"uncontended", "contended"}[i/3], r.Scenario)
		require.Equal(t, []int{1, 4}[i/3], r.Clients)
		require.Positive(t, r.OpsPerS)
		require.Positive(t, r.P50)
		require.GreaterOrEqual(t, r.P99, r.P50)
		require.Equal(t, 3, r.Rounds)
		require.LessOrEqual(t, r.OpsPerSMin, r.OpsPerS)
		require.GreaterOrEqual(t, r.OpsPerSMax, r.OpsPerS)
		require.Equal(t, "menagerie", r.Reference)
		require.Positive(t, r.Ratio)
		require.Equal(t, i%3 == 0, r.Ratio == 1 && r.RatioMin == 1 && r.RatioMax == 1)
		require.Positive(t, r.BytesInPerOp)
		require.Greater(t, r.BytesOutPerOp, 50.0)
	}
	// What each peer's lock costs when nobody else is there. Menagerie's asks once more when it is held for half a
	// second, which happens if the machine does not let this process run; and it looks at each new path once.
	for _, r := range rows[:3] {
		cost := costs[Uncontended][r.Peer]
		require.GreaterOrEqual(t, *r.RequestsPerOp, cost[0], r.Peer)
		require.LessOrEqual(t, *r.RequestsPerOp, cost[1]+0.2, r.Peer)
	}
	left := srv.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
	require.Empty(t, srv.Sessions())
}

func TestAChrootIsHonouredByEveryPeer(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	srv.Load(map[string]string{"/app": ""})
	rows, err := runOn(t, context.Background(), addr+"/app", 30*time.Millisecond, of(t, Contended, 2), of(t, Deep, 3))
	require.NoError(t, err)
	require.Len(t, rows, 6)
	left := srv.Children("/")
	require.ElementsMatch(t, []string{"app", "zookeeper"}, left)
	left = srv.Children("/app")
	require.Empty(t, left)
}

func TestTheMeterAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	for _, p := range Peers() {
		srv, addr, requests := serve(t)
		at := slice(t, srv, addr, of(t, Contended, 3))
		base := requests()
		s, err := p.Run(context.Background(), at)
		require.NoError(t, err)
		require.Positive(t, s.Ops)
		require.Len(t, s.Latencies, s.Ops)
		require.Equal(t, requests()-base, s.Requests, p.Name())
	}
}

func TestACancelledRunReturnsTheCauseAndLeavesNoNode(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		for len(srv.Sessions()) < 3 { // the run is at work
			time.Sleep(time.Millisecond) // until it is so: the server, in real time, tells nobody
		}
		cancel(cause)
	}()
	rows, err := runOn(t, ctx, addr, time.Hour, of(t, Contended, 4))
	require.ErrorIs(t, err, cause)
	require.Empty(t, rows)
	// A session that was being opened at that instant may be left, but nothing is its own.
	left := srv.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}

func TestAServerThatDiesIsAnErrorThatNamesThePeer(t *testing.T) {
	t.Parallel()
	for _, p := range Peers() {
		srv, addr, _ := serve(t)
		at := slice(t, srv, addr, of(t, Contended, 2))
		at.Duration, at.Timeout = time.Minute, time.Second
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		go func() {
			for len(srv.Children("/q")) == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond) // as above
			}
			srv.Close()
			cancel() // menagerie is patient and would wait for the server to come back
		}()
		_, err := p.Run(ctx, at)
		require.Error(t, err, p.Name())
	}
}

func TestPercentilesAreTakenFromTheSample(t *testing.T) {
	var all []time.Duration
	for i := 1; i <= 200; i++ {
		all = append(all, time.Duration(i)*time.Microsecond)
	}
	require.Equal(t, 100.0, percentile(all, 50))
	require.Equal(t, 198.0, percentile(all, 99))
	require.Equal(t, 1.0, percentile(all[:1], 99))
	require.Zero(t, percentile(nil, 50))
}

func TestConnectStringsAreSplitForThePlainClient(t *testing.T) {
	for s, want := range map[string]struct {
		addresses []string
		chroot    string
	}{
		"zk1:2181":                  {[]string{"zk1:2181"}, ""},
		"zk1, zk2:2182 ,[::1]/a/b/": {[]string{"zk1:2181", "zk2:2182", "[::1]:2181"}, "/a/b"},
		"[::1]:2183/":               {[]string{"[::1]:2183"}, ""},
	} {
		addresses, chroot := splitServers(s)
		require.Equal(t, want.addresses, addresses)
		require.Equal(t, want.chroot, chroot)
	}
}
