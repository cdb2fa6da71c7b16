package servers

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const limit = 9 * time.Second

// inEnsemble runs f with three servers in virtual time.
func inEnsemble(t *testing.T, f func(t *testing.T, e *zktest.Ensemble, o Options), opts ...zktest.Option) {
	synctest.Test(t, func(t *testing.T) {
		e := zktest.RunEnsemble(t, 3, opts...)
		f(t, e, Options{Servers: e.Servers(), Dial: e.DialContext, Limit: limit, Range: true, Timeout: 15 * time.Second})
	})
}

// alone runs f with one server in virtual time.
func alone(t *testing.T, f func(t *testing.T, s *zktest.Server, o Options), opts ...zktest.Option) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Run(t, opts...)
		dial := func(_ context.Context, network, addr string) (net.Conn, error) { return s.Dial(network, addr, 0) }
		f(t, s, Options{Servers: []string{"zk:2181"}, Dial: dial, Limit: limit, Range: true, Timeout: 15 * time.Second})
	})
}

// look looks, and checks how long that took.
func look(t *testing.T, o Options, took time.Duration) *Report {
	t.Helper()
	began := time.Now()
	r := Look(t.Context(), o)
	require.Equal(t, took, time.Since(began))
	require.Equal(t, began, r.At)
	require.Len(t, r.Servers, len(o.Servers))
	return r
}

func texts(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Severity+": "+f.Text)
	}
	return all
}

func TestAnEnsembleThatIsWellHasNoFindings(t *testing.T) {
	inEnsemble(t, func(t *testing.T, e *zktest.Ensemble, o Options) {
		s := e.SessionAt(t, 1, zksync.WithTimeout(10*time.Second))
		r := look(t, o, 0)
		require.Empty(t, r.Findings)
		require.True(t, r.Tells)
		require.Equal(t, Ensemble{Quorum: true, Voters: 3, Serving: 3, TimeoutMin: 100, TimeoutMax: 3_600_000,
			Containers: true, TTL: true, PersistentWatches: true}, r.Ensemble)
		for i, x := range r.Servers {
			mode := map[bool]string{true: "leader", false: "follower"}[i == e.Leader()]
			require.Equal(t, Server{Addr: o.Servers[i], Reachable: true, Serves: true, Mode: mode, Version: "3.8.0-menagerie",
				Connections: map[bool]int{true: 1}[i == 1], Nodes: x.Nodes, Zxid: x.Zxid, Words: []string{"srvr", "cons", "dump", "conf"}}, x)
			require.Positive(t, x.Nodes)
			require.Regexp(t, "^0x[0-9a-f]+$", x.Zxid)
		}
		require.Len(t, r.Clients, 1, "our own sessions are left out, of all servers")
		c := r.Clients[s.ID()]
		require.True(t, c.Connected)
		require.True(t, *c.Exists)
		require.EqualValues(t, 10_000, c.TimeoutMS)
		for i := range e.Len() {
			require.LessOrEqual(t, len(e.Server(i).Sessions()), 1, "no session of ours stays")
		}
	})
}

func TestAServerThatIsDownIsAFindingOnly(t *testing.T) {
	inEnsemble(t, func(t *testing.T, e *zktest.Ensemble, o Options) {
		down := (e.Leader() + 1) % 3
		e.Server(down).Stop()
		r := look(t, o, 0)
		require.True(t, r.Ensemble.Quorum)
		require.Equal(t, 2, r.Ensemble.Serving)
		require.Equal(t, []string{"problem: " + o.Servers[down] + " is not reachable: connection refused: no server listens there"}, texts(r))
		require.Equal(t, o.Servers[down], r.Findings[0].Server)
		require.False(t, r.Servers[down].Reachable)
		require.EqualValues(t, -1, r.Servers[down].LatencyMS)
		require.Empty(t, r.Servers[down].Words)
	})
}

func TestASilentServerDoesNotKeepTheOthersFromBeingSeen(t *testing.T) {
	inEnsemble(t, func(t *testing.T, e *zktest.Ensemble, o Options) {
		frozen := (e.Leader() + 1) % 3
		e.SessionAt(t, e.Leader()) // before the first transaction of a leader its zxid has nothing to be compared with
		synctest.Wait()
		defer e.Server(frozen).Freeze()()
		r := look(t, o, patience)
		require.Equal(t, []string{"problem: " + o.Servers[frozen] + " is not reachable: silent: no answer for 3s after those of the others"}, texts(r))
		for i, s := range r.Servers {
			require.Equal(t, i != frozen, s.Serves)
			require.Equal(t, map[bool]int64{true: -1}[i == frozen], s.ZxidLag)
		}
	})
}

func TestServersWithoutAQuorumDoNotServe(t *testing.T) {
	inEnsemble(t, func(t *testing.T, e *zktest.Ensemble, o Options) {
		for i := range 2 {
			e.Server(i).Stop()
		}
		time.Sleep(time.Minute)
		r := look(t, o, 0)
		require.False(t, r.Ensemble.Quorum)
		require.Equal(t, "problem: no quorum: no server grants a session", texts(r)[0])
		require.Contains(t, texts(r), "problem: "+o.Servers[2]+" does not serve: it runs, but does not serve: it has no quorum, or is starting")
		require.True(t, r.Servers[2].Reachable)
		require.False(t, r.Tells)
	})
}

func TestReleasesHaveWhatTheyHad(t *testing.T) {
	for version, want := range map[string]Ensemble{
		"3.4": {}, "3.5": {Containers: true, TTL: true}, "3.6": {Containers: true, TTL: true, PersistentWatches: true}, "3.9": {Containers: true, TTL: true, PersistentWatches: true},
	} {
		alone(t, func(t *testing.T, _ *zktest.Server, o Options) {
			r := look(t, o, 0)
			require.Empty(t, r.Findings, "the in-process server has the faults of no release")
			e := r.Ensemble
			require.Equal(t, want, Ensemble{Containers: e.Containers, TTL: e.TTL, PersistentWatches: e.PersistentWatches}, version)
			require.Equal(t, "standalone", r.Servers[0].Mode)
		}, zktest.WithVersion(version))
	}
}

func TestWithoutItsWordsAServerIsKnownByItsAnswers(t *testing.T) {
	const tells = "note: the servers do not tell which clients live: allow cons and dump in 4lw.commands.whitelist"
	alone(t, func(t *testing.T, _ *zktest.Server, o Options) {
		r := look(t, o, 0)
		require.Equal(t, []string{"note: mode and version are unknown: srvr is not answered by zk:2181", tells}, texts(r))
		require.True(t, r.Servers[0].Serves)
		require.Empty(t, r.Servers[0].Words)
		require.Empty(t, r.Servers[0].Mode+r.Servers[0].Version+r.Servers[0].Zxid)
		require.Equal(t, Ensemble{Quorum: true, Voters: 1, Serving: 1, TimeoutMin: 100, TimeoutMax: 3_600_000}, r.Ensemble, "by what it grants")
		require.Zero(t, r.Servers[0].LatencyMS)
		require.False(t, r.Tells)
	}, zktest.WithFourLetterWords())
	alone(t, func(t *testing.T, _ *zktest.Server, o Options) {
		r := look(t, o, 0)
		require.Equal(t, []string{tells}, texts(r))
		require.Equal(t, []string{"srvr"}, r.Servers[0].Words)
		require.Equal(t, 2000, r.Ensemble.TimeoutMin)
		o.Range, o.Timeout = false, 0
		require.Zero(t, look(t, o, 0).Ensemble.TimeoutMin)
	}, zktest.WithFourLetterWords("srvr"), zktest.WithTick(time.Second))
}

func TestATimeoutThatIsNotGrantedIsAFinding(t *testing.T) {
	alone(t, func(t *testing.T, _ *zktest.Server, o Options) {
		o.Timeout = 3 * time.Second
		require.Equal(t, []string{"problem: --timeout 3s is less than the servers grant: sessions last 4s (at least two ticks)"}, texts(look(t, o, 0)))
		o.Timeout = 4 * time.Second
		require.Empty(t, look(t, o, 0).Findings)
	}, zktest.WithTick(2*time.Second))
}

func TestTheLatencyIsThatOfOneRequest(t *testing.T) {
	alone(t, func(t *testing.T, s *zktest.Server, o Options) {
		require.Zero(t, look(t, o, 0).Servers[0].LatencyMS)
		s.Intercept(zktest.On(zktest.Exists, "/").DelayReply(70 * time.Millisecond))
		require.InDelta(t, 70, look(t, o, 70*time.Millisecond).Servers[0].LatencyMS, 0)
	})
}

func TestALookThatIsCutShortLeavesNoSession(t *testing.T) {
	alone(t, func(t *testing.T, s *zktest.Server, o Options) {
		s.Intercept(zktest.On(zktest.Exists, "/").DelayReply(time.Minute))
		look(t, o, limit)
		synctest.Wait()
		require.Empty(t, s.Sessions(), "it would look like that of a dead client")
	})
}

func TestASilentClientIsProbablyDead(t *testing.T) {
	alone(t, func(t *testing.T, _ *zktest.Server, o Options) {
		cfg := o.config(10 * time.Second)
		p, err := zkconn.OpenProbe(t.Context(), cfg, "zk:2181", limit)
		require.NoError(t, err)
		defer p.Close()
		time.Sleep(6 * time.Second)
		require.NoError(t, p.Ask())
		time.Sleep(6 * time.Second)
		r := look(t, o, 0)
		require.EqualValues(t, 6000, r.Clients[p.ID].HeardMS)
		text, probably := r.Dead(p.ID)
		require.Empty(t, text)
		require.False(t, probably)
		time.Sleep(time.Second)
		r = look(t, o, 0)
		text, probably = r.Dead(p.ID)
		require.Equal(t, "last heard 7 s ago: free in at most 3 s", text)
		require.Equal(t, []string{"note: the client with session " + r.Clients[p.ID].Session + " is probably dead: " + text}, texts(r))
		require.True(t, probably)
		require.NoError(t, p.Ask())
		text, _ = look(t, o, 0).Dead(p.ID)
		require.Empty(t, text)
	}, zktest.WithLeftovers())
}

func TestASessionWithoutAConnectionIsProbablyDead(t *testing.T) {
	inEnsemble(t, func(t *testing.T, e *zktest.Ensemble, o Options) {
		cfg := o.config(10 * time.Second)
		var die func() error
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := o.Dial(ctx, network, addr)
			die = c.Close
			return c, err
		}
		p, err := zkconn.OpenProbe(t.Context(), cfg, o.Servers[e.Leader()], limit)
		require.NoError(t, err)
		require.NoError(t, die())
		synctest.Wait()
		text, probably := look(t, o, 0).Dead(p.ID)
		require.Equal(t, "not connected to any server: free in at most 10 s", text)
		require.False(t, probably, "it may have moved")
		time.Sleep(5 * time.Second)
		text, probably = look(t, o, 0).Dead(p.ID)
		require.Regexp(t, "^not connected to any server: free in at most [67] s$", text)
		require.True(t, probably)
		time.Sleep(6 * time.Second)
		text, _ = look(t, o, 0).Dead(p.ID)
		require.Empty(t, text, "the servers have freed it")
	}, zktest.WithLeftovers())
}

// Real ports, since a kernel answers differently from a pipe.
func TestPortsThatAreNotZooKeeperSayWhatTheyAre(t *testing.T) {
	refusing, free, err := loopback.Refusing()
	require.NoError(t, err)
	defer free()
	mute := listens(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	closing := listens(t, func(net.Conn) {})
	web := listens(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	babbling := listens(t, func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, "Zookeeper version: 3.9\n"); err != nil {
				return
			}
		}
	})
	began := time.Now()
	r := Look(t.Context(), Options{Servers: []string{refusing, mute, closing, web, babbling}, Limit: 2 * time.Second, Range: true})
	require.Less(t, time.Since(began), 3*time.Second)
	require.False(t, r.Ensemble.Quorum)
	for i, want := range []string{"connection refused: no server listens there", "silent: it accepted the connection and gave no answer in 1.5s",
		"it accepted the connection, then closed it: is there no quorum, is this a port for TLS", `not ZooKeeper: it answered "HTTP/1.1 400 Bad Request"`, `not ZooKeeper: it answered "Zookeeper version: 3.9"`} {
		require.Contains(t, r.Servers[i].Error, want)
		require.False(t, r.Servers[i].Reachable)
		require.Equal(t, []string{"start it, correct its port, or take it out of the connect string", "correct its port or WithTLS, or look at its log",
			"start servers until more than half of the ensemble run, or correct its port or WithTLS",
			"correct the port (ZooKeeper's is usually 2181)", "correct the port (ZooKeeper's is usually 2181)"}[i], r.Findings[i].Fix)
		require.NotContains(t, r.Findings[i].Text, r.Findings[i].Fix)
	}
	require.Len(t, r.Findings, 6)
}

// listens serves each connection with f, and closes it then.
func listens(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := loopback.Listen()
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return l.Addr().String()
}
