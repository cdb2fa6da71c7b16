package engine

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// ask sends a four-letter word on a connection of its own and returns the answer.
func ask(t testing.TB, s *Server, word string) string {
	t.Helper()
	w := dial(t, s)
	_, err := w.nc.Write([]byte(word))
	require.NoError(t, err)
	answer, err := io.ReadAll(w.nc)
	require.NoError(t, err)
	return string(answer)
}

// settled is ask after everything else has come to rest.
func settled(t testing.TB, s *Server, word string) string {
	t.Helper()
	synctest.Wait()
	return ask(t, s, word)
}

// mntr returns the monitoring values without their prefix.
func mntr(t testing.TB, s *Server) map[string]string {
	t.Helper()
	values := map[string]string{}
	for line := range strings.Lines(settled(t, s, "mntr")) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.True(t, ok, line)
		values[strings.TrimPrefix(k, "zk_")] = v
	}
	return values
}

func TestSrvrAndStatReportVitalsInTheRealFormat(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a := join(t, s, 10*time.Second)
		a.create("/a", nil, 0)
		vitals := "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: 2\nOutstanding: 0\nZxid: 0x2\nMode: standalone\nNode count: 6\n"
		require.Equal(t, "Zookeeper version: 3.8.0-menagerie, built on 2000-01-01 00:00 UTC\n"+fmt.Sprintf(vitals, 3, 2), settled(t, s, "srvr"))
		require.Equal(t, "Zookeeper version: 3.8.0-menagerie, built on 2000-01-01 00:00 UTC\nClients:\n"+
			" /pipe[1](queued=0,recved=2,sent=2)\n /pipe[0](queued=0,recved=1,sent=0)\n\n"+fmt.Sprintf(vitals, 4, 3), settled(t, s, "stat"))
		require.Equal(t, "imok", ask(t, s, "ruok"))
		require.Equal(t, "rw", ask(t, s, "isro"))
	})
}

func TestConsTellsWhatEachConnectionDidLast(t *testing.T) {
	inBubble(t, Config{CommitLatency: 30 * time.Millisecond}, func(t *testing.T, s *Server) {
		a := join(t, s, 10*time.Second)
		epoch := time.Now().Add(-30 * time.Millisecond).UnixMilli()
		line := func() string { return strings.SplitAfter(settled(t, s, "cons"), "\n")[0] }
		head := func(n, m int) string {
			return fmt.Sprintf(" /pipe[1](queued=%d,recved=%d,sent=%d,sid=0x%x,", n, m, m-n, a.id)
		}
		require.Equal(t, head(0, 1)+fmt.Sprintf("lop=SESS,est=%d,to=10000,lcxid=0x0,lzxid=0x1,lresp=30,llat=30,minlat=30,avglat=30,maxlat=30)\n", epoch), line())
		a.send(wire.OpCreate, createBody("/a", nil, wire.OpenACL(), 0))
		require.Contains(t, line(), head(1, 2)+"lop=SESS,", "on its way")
		require.Equal(t, wire.CodeOK, a.next().code)
		require.Contains(t, line(), "lop=CREA,")
		require.Equal(t, wire.CodeNodeExists, a.create("/a", nil, 0).code)
		require.Contains(t, line(), "lop=NA,", "a write that failed has no name")
		require.Equal(t, wire.CodeNoNode, a.do(wire.OpGetData, watchBody("/none", false)).code)
		require.Equal(t, head(0, 4)+fmt.Sprintf("lop=GETD,est=%d,to=10000,lcxid=0x3,lzxid=0x3,lresp=90,llat=0,minlat=0,avglat=22,maxlat=30)\n", epoch), line())
		a.events()
		require.Contains(t, line(), "lop=PING,")
		require.Equal(t, "Connection stats reset.\n", ask(t, s, "crst"))
		require.Equal(t, fmt.Sprintf(" /pipe[1](queued=0,recved=0,sent=0,sid=0x%x,lop=NA,est=%d,to=10000,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n", a.id, epoch), line())
		_ = a.nc.Close()
		again := dial(t, s)
		again.connect(10*time.Second, a.id, a.pass, 0)
		require.Contains(t, line(), "lop=null,est=", "a connection that has not asked for anything yet")
		require.Contains(t, line(), ",to=10000,lcxid=0x0,lzxid=0x0,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n")
		require.Equal(t, " /pipe[0](queued=0,recved=1,sent=0)\n\n", strings.SplitN(ask(t, s, "cons"), "\n", 2)[1])
	})
}

func TestMntrCountsPacketsBytesWatchesAndLatencies(t *testing.T) {
	inBubble(t, Config{CommitLatency: 10 * time.Millisecond}, func(t *testing.T, s *Server) {
		require.Equal(t, "-1", mntr(t, s)["last_client_response_size"], "nothing was sent yet")
		require.Equal(t, "Server stats reset.\n", ask(t, s, "srst"))
		a, b := join(t, s, 10*time.Second), join(t, s, 4*time.Second)
		a.create("/a", []byte("xyz"), 0)
		a.do(wire.OpGetData, watchBody("/a", true))
		a.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		b.create("/e", nil, wire.FlagEphemeral)
		b.do(wire.OpSetData, setBody("/a", nil, -1))
		require.Equal(t, []string{"created /e", "changed /a"}, a.events())
		v := mntr(t, s)
		for k, want := range map[string]string{
			"server_state": "standalone", "znode_count": "7", "ephemerals_count": "1", "num_alive_connections": "3",
			"global_sessions": "2", "local_sessions": "0", "watch_count": "2", "outstanding_requests": "0",
			"packets_received": "9", "packets_sent": "11", "connection_request_count": "2",
			"min_client_response_size": "16", "max_client_response_size": "91", "last_client_response_size": "16",
			"approximate_data_size": fmt.Sprint(len("/zookeeper/zookeeper/quota/zookeeper/config/") + len("/a/e")),
			"response_bytes":        fmt.Sprint(22 + 91 + 20 + 22 + 84),
			"min_latency":           "0", "max_latency": "10", "avg_latency": "6.25",
			"cnt_updatelatency": "5", "sum_updatelatency": "50", "avg_updatelatency": "10.0", "cnt_readlatency": "3", "max_readlatency": "0",
			"cnt_node_created_watch_count": "1", "sum_node_created_watch_count": "1", "avg_node_created_watch_count": "1.0",
			"cnt_node_changed_watch_count": "1", "cnt_node_deleted_watch_count": "0", "cnt_node_children_watch_count": "0",
			"stale_sessions_expired": "0", "uptime": "50",
		} {
			require.Equal(t, want, v[k], k)
		}
		_ = b.nc.Close()
		time.Sleep(9 * time.Second)
		v = mntr(t, s)
		require.Equal(t, "1", v["stale_sessions_expired"])
		require.Equal(t, "2", v["cnt_node_deleted_watch_count"], "by the data and by the child half of the watch")
		require.Equal(t, "6", v["znode_count"])
		require.Equal(t, "1", v["global_sessions"])
		ask(t, s, "srst")
		v = mntr(t, s)
		require.Equal(t, "1", v["packets_received"], "itself")
		require.Equal(t, "0", v["cnt_node_deleted_watch_count"])
		require.Equal(t, "2", v["watch_count"])
	})
}

func TestAHeldRequestIsOutstanding(t *testing.T) {
	release := make(chan struct{})
	cfg := Config{Intercept: func(r *Request) Verdict {
		if r.Op == wire.OpSync {
			return Verdict{Hold: true, Release: release}
		}
		return Verdict{}
	}}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		s := newServer(t, cfg)
		a := join(t, s, 10*time.Second)
		a.send(wire.OpSync, pathBody("/x"))
		a.send(wire.OpExists, watchBody("/", false))
		require.Equal(t, "2", mntr(t, s)["outstanding_requests"])
		require.Contains(t, ask(t, s, "stat"), "(queued=2,")
		close(release)
		a.next()
		a.next()
		require.Equal(t, "0", mntr(t, s)["outstanding_requests"])
	})
}

func TestTheWordsAboutWatchesTellOfDataWatches(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, "0 connections watching 0 paths\nTotal watches:0\n", ask(t, s, "wchs"))
		require.Equal(t, "\n", ask(t, s, "wchp"))
		a.do(wire.OpExists, watchBody("/x", true))
		a.do(wire.OpAddWatch, kindBody("/y", modePersistent))
		a.do(wire.OpGetChildren, watchBody("/", true))
		b.do(wire.OpExists, watchBody("/x", true))
		require.Equal(t, "2 connections watching 2 paths\nTotal watches:3\n", ask(t, s, "wchs"))
		sid := func(w *rawClient) string { return fmt.Sprintf("0x%x\n", w.id) }
		require.Equal(t, sid(a)+"\t/x\n\t/y\n"+sid(b)+"\t/x\n\n", ask(t, s, "wchc"))
		require.Equal(t, "/x\n\t"+sid(a)+"\t"+sid(b)+"/y\n\t"+sid(a)+"\n", ask(t, s, "wchp"))
		b.send(wire.OpCreate, createBody("/x", nil, wire.OpenACL(), 0))
		b.requireEvent(wire.EventCreated, "/x")
		b.next()
		require.Equal(t, []string{"created /x", "children /"}, a.events())
		require.Equal(t, "2 connections watching 1 paths\nTotal watches:1\n", ask(t, s, "wchs"), "who has watched counts on")
		_ = b.nc.Close()
		require.Equal(t, "1 connections watching 1 paths\nTotal watches:1\n", settled(t, s, "wchs"))
	})
}

func TestDumpFilesSessionsAndConnectionsByTheInstantOfTheirExpiry(t *testing.T) {
	inBubble(t, Config{Tick: 2 * time.Second}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 4*time.Second)
		a.create("/e", nil, wire.FlagEphemeral)
		sid := func(w *rawClient) string { return fmt.Sprintf("0x%x", w.id) }
		require.Equal(t, "SessionTracker dump:\nSession Sets (2)/(2):\n"+
			"1 expire at Sat Jan 01 00:00:06 UTC 2000:\n\t"+sid(b)+"\n"+
			"1 expire at Sat Jan 01 00:00:12 UTC 2000:\n\t"+sid(a)+"\n"+
			"ephemeral nodes dump:\nSessions with Ephemerals (1):\n"+sid(a)+":\n\t/e\n"+
			"Connections dump:\nConnections Sets (2)/(3):\n"+
			"1 expire at Sat Jan 01 00:00:10 UTC 2000:\n\tip: /pipe sessionId: "+sid(b)+"\n"+
			"2 expire at Sat Jan 01 00:00:20 UTC 2000:\n\tip: /pipe sessionId: 0x0\n\tip: /pipe sessionId: "+sid(a)+"\n",
			settled(t, s, "dump"))
	})
}

func TestConfAndDirsHaveTheRealNames(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		require.Equal(t, "clientPort=0\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n"+
			"tickTime=1000\nmaxClientCnxns=0\nminSessionTimeout=2000\nmaxSessionTimeout=20000\nclientPortListenBacklog=-1\nserverId=0\n",
			ask(t, s, "conf"))
		require.Equal(t, "datadir_size: 0\nlogdir_size: 0\n", ask(t, s, "dirs"))
		require.Contains(t, ask(t, s, "envi"), "Environment:\nzookeeper.version=3.8.0-menagerie, built on 2000-01-01 00:00 UTC\nhost.name=")
	})
}

func TestAWordThatIsNotAllowedIsRefusedByNameAndStillCounted(t *testing.T) {
	inBubble(t, Config{FourLetterWords: []string{"srvr", "ruok"}}, func(t *testing.T, s *Server) {
		require.Equal(t, "stat is not executed because it is not in the whitelist.\n", ask(t, s, "stat"))
		require.Equal(t, "imok", ask(t, s, "ruok"))
		require.Contains(t, settled(t, s, "srvr"), "Received: 3\nSent: 2\n")
		require.Empty(t, ask(t, s, "what"), "an unknown word is the length of a frame, and too long")
	})
	inBubble(t, Config{FourLetterWords: []string{"*"}}, func(t *testing.T, s *Server) {
		require.Equal(t, "rw", ask(t, s, "isro"))
	})
	inBubble(t, Config{FourLetterWords: []string{}}, func(t *testing.T, s *Server) {
		require.Contains(t, ask(t, s, "ruok"), "not in the whitelist")
	})
}

func TestTheWordsOfAMemberTellItsPlaceInTheEnsemble(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(0), 10*time.Second)
		w.create("/e", nil, wire.FlagEphemeral)
		for i, place := range []string{"following - broadcast", "following - broadcast", "leading - broadcast"} {
			v := mntr(t, e.Member(i))
			require.Equal(t, place, v["peer_state"])
			require.Equal(t, "3", v["quorum_size"])
			require.Equal(t, map[bool]string{true: "2"}[i == 2], v["synced_followers"])
			require.Equal(t, map[bool]string{true: "2"}[i == 2], v["learners"])
			require.Equal(t, "1", v["global_sessions"])
			require.Contains(t, ask(t, e.Member(i), "conf"), fmt.Sprintf("serverId=%d\n", i+1))
		}
		sid := fmt.Sprintf("0x%x", w.id)
		require.Contains(t, ask(t, e.Member(0), "dump"), "SessionTracker dump:\nGlobal Sessions(1):\n"+sid+"\t10000ms\nephemeral nodes dump:\nSessions with Ephemerals (1):\n"+sid+":\n\t/e\n")
		require.Contains(t, ask(t, e.Member(2), "dump"), "SessionTracker dump:\nSession Sets (1)/(1):\n")
		require.Equal(t, "0", mntr(t, e.Member(1))["outstanding_requests"])
	})
}

func TestAMemberWithoutALeaderAnswersNothingButWords(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		waiting := dial(t, e.Member(0))
		heal := e.Isolate(0)
		time.Sleep(6 * time.Second)
		require.False(t, e.Serving(0))
		waiting.requireClosed()
		for _, word := range []string{"srvr", "stat", "mntr", "cons", "wchs", "wchc", "wchp", "dump", "conf", "dirs", "srst", "crst"} {
			require.Equal(t, "This ZooKeeper instance is not currently serving requests\n", ask(t, e.Member(0), word), word)
		}
		require.Equal(t, "imok", ask(t, e.Member(0), "ruok"))
		require.Equal(t, "null", ask(t, e.Member(0), "isro"))
		require.Contains(t, ask(t, e.Member(0), "envi"), "Environment:\n")
		early := dial(t, e.Member(0))
		heal()
		early.connect(10*time.Second, 0, nil, 0)
		require.NotZero(t, early.id, "whoever came before there was a leader may begin afterwards")
		require.Contains(t, ask(t, e.Member(0), "srvr"), "Mode: follower\n")
	})
}
