package servers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The texts as each release prints them.
const (
	srvr34 = "Zookeeper version: 3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf, built on 03/06/2019 16:18 GMT\nLatency min/avg/max: 0/0/40\n" +
		"Received: 97\nSent: 96\nConnections: 3\nOutstanding: 0\nZxid: 0x200000007\nMode: follower\nNode count: 9\n"
	srvr35 = "Zookeeper version: 3.5.10-6c3ac8a5e30a60c7b4e0dbdcba5a3ba0ec83cf1d, built on 06/01/2022 16:22 GMT\nLatency min/avg/max: 0/1/40\n" +
		"Received: 97\nSent: 96\nConnections: 3\nOutstanding: 0\nZxid: 0x200000007\nMode: leader\nNode count: 9\nProposal sizes last/min/max: 36/36/96\n"
	srvr36 = "Zookeeper version: 3.6.3--6401e4ad2087061bc6b9f80dec2d69f2e3c8660a, built on 04/08/2021 16:35 GMT\nLatency min/avg/max: 0/0.6/11\n" +
		"Received: 97\nSent: 96\nConnections: 3\nOutstanding: 0\nZxid: 0x200000007\nMode: observer\nNode count: 9\n"
	srvr38 = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\nLatency min/avg/max: 2/13.0/38\n" +
		"Received: 97\nSent: 96\nConnections: 3\nOutstanding: 0\nZxid: 0x200000007\nMode: standalone\nNode count: 9\n"
	srvr39 = "Zookeeper version: 3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee, built on 2024-10-17 23:21 UTC\nLatency min/avg/max: 2/13.0/38\n" +
		"Received: 97\nSent: 96\nConnections: 3\nOutstanding: 0\nZxid: 0x200000007\nMode: leader\nNode count: 9\nProposal sizes last/min/max: 48/48/80\n"

	cons38 = " /127.0.0.1:52972[1](queued=0,recved=10,sent=10,sid=0x10004a76cf10001,lop=SYNC,est=1795945872899,to=10000,lcxid=0x40000008,lzxid=0x10000000b,lresp=78095341,llat=2,minlat=0,avglat=8,maxlat=25)\n" +
		" /[0:0:0:0:0:0:0:1]:52974[1](queued=0,recved=1,sent=1,sid=0xf0004a76cf10002,lop=NA,est=1795945872999,to=4000,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n" +
		" /127.0.0.1:53000[0](queued=0,recved=1,sent=0)\n\n"

	sets = "3 expire at Sun Nov 29 10:51:24 CET 2026:\n\t0x10004a76cf10001\n\t0xf0004a76cf10002\n\t0x30004a76cf10009\n" +
		"1 expire at Sun Nov 29 10:51:31 CET 2026:\n\t0x30004a76cf10003\n0 expire at Sun Nov 29 10:52:12 CET 2026:\n"
	ephemerals = "ephemeral nodes dump:\nSessions with Ephemerals (2):\n0x10004a76cf10001:\n\t/locks/a/0x7:\n\t/locks/a/x\n0x5000000000000:\n\t/locks/b/y\n"
	rest38     = "Connections dump:\nConnections Sets (3)/(1):\n1 expire at Sun Nov 29 10:51:28 CET 2026:\n\tip: /127.0.0.1:34848 sessionId: 0x0\n"
	dump34     = "SessionTracker dump:\nSession Sets (3):\n" + sets + ephemerals
	dump38     = "SessionTracker dump:\nSession Sets (3)/(4):\n" + sets + ephemerals + rest38
	dumpLocal  = "SessionTracker dump:\nLocal Session Sets (0)/(0):\nGlobal Session Sets (3)/(4):\n" + sets + ephemerals + rest38
	follower   = "SessionTracker dump:\nGlobal Sessions(2):\n0x10004a76cf10001\t10000ms\n0xf0004a76cf10002\t4000ms\n" + ephemerals + rest38
	followers  = "SessionTracker dump:\nLocal Session Sets (1)/(1):\n1 expire at Sun Nov 29 10:51:24 CET 2026:\n\t0x99\nGlobal Sessions(1):\n0x10004a76cf10001\t10000ms\n" + ephemerals
)

func TestSrvrOfEachReleaseIsRead(t *testing.T) {
	for text, want := range map[string][2]string{
		srvr34: {"3.4.14", "follower"}, srvr35: {"3.5.10", "leader"}, srvr36: {"3.6.3", "observer"},
		srvr38: {"3.8.0", "standalone"}, srvr39: {"3.9.3", "leader"},
	} {
		v, ok := parseSrvr(text)
		require.True(t, ok)
		require.Equal(t, vitals{want[0], want[1], 0x200000007, true, 3, 9}, v)
	}
	for text, want := range map[string]string{
		"3.8.0-menagerie, built on x": "3.8.0-menagerie", "3.9.3-SNAPSHOT-abc, b": "3.9.3-SNAPSHOT",
		"3.5.4-beta-7f51e5b68cf2f80176ff944a9ebd2abbc65e7327, built on 05/11/2018": "3.5.4-beta", "\x1b[31m3.9": "",
	} {
		require.Equal(t, want, cleanVersion(text))
	}
	v, ok := parseSrvr(idle + "\n")
	require.False(t, ok)
	require.Equal(t, -1, v.connections)
	require.True(t, isIdle(idle+"\n"))
	require.True(t, refused("srvr", "srvr is not executed because it is not in the whitelist.\n"))
}

func TestConsIsReadWithItsAddresses(t *testing.T) {
	require.Equal(t, []link{
		{0x10004a76cf10001, "127.0.0.1:52972", 10000, 1795945872899, 78095341},
		{0xf0004a76cf10002, "[0:0:0:0:0:0:0:1]:52974", 4000, 1795945872999, 0},
	}, parseCons(cons38))
}

func TestDumpsOfLeadersAndFollowersAreRead(t *testing.T) {
	first := time.Date(2026, 11, 29, 10, 51, 24, 0, time.UTC)
	owners := map[int64]bool{0x10004a76cf10001: true, 0x5000000000000: true}
	for _, text := range []string{dump34, dump38, dumpLocal} {
		d, ok := parseDump(text)
		require.True(t, ok)
		require.True(t, d.decides)
		require.Equal(t, map[int64]time.Time{0x10004a76cf10001: first, 0xf0004a76cf10002: first, 0x30004a76cf10009: first,
			0x30004a76cf10003: first.Add(7 * time.Second)}, d.expires)
		require.Equal(t, owners, d.owners)
		require.Equal(t, []int64{0x5000000000000}, d.orphans())
	}
	d, ok := parseDump(follower)
	require.True(t, ok)
	require.False(t, d.decides)
	require.Equal(t, map[int64]int64{0x10004a76cf10001: 10000, 0xf0004a76cf10002: 4000}, d.timeouts)
	require.Empty(t, d.orphans(), "a follower may not have heard of them yet")
	d, _ = parseDump(followers)
	require.False(t, d.decides, "it decides about its local sessions only")
	_, ok = parseDump("")
	require.False(t, ok)
}

func TestConfHasTheBounds(t *testing.T) {
	least, most, tick := parseConf("clientPort=2181\ntickTime=500\nminSessionTimeout=1000\nmaxSessionTimeout=60000\n")
	require.Equal(t, []int64{1000, 60000, 500}, []int64{least, most, tick})
	least, most, _ = parseConf("minSessionTimeout=-1\nmaxSessionTimeout=x\n")
	require.Zero(t, least+most)
}

// What a server sends may be garbage, or the real thing with anything in place of a part.
func TestNoAnswerOfAServerPanics(t *testing.T) {
	real := []string{srvr34, srvr35, srvr36, srvr38, srvr39, cons38, dump34, dump38, dumpLocal, follower, followers}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(real).Draw(t, "text")
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := rapid.IntRange(from, len(text)).Draw(t, "to")
		junk := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "0x", "(", "[", ")", "\t", "\n", " expire at ", "sid=0x1,", "-", "9223372036854775808"})).Draw(t, "junk")
		text = text[:from] + junk + text[to:]
		v, _ := parseSrvr(text)
		s := &sight{Server: Server{Words: []string{}}, id: 0x10004a76cf10001, links: parseCons(text), answer: v, granted: usual}
		d, _ := parseDump(text)
		s.dump = &d
		s.least, s.most, s.tick = parseConf(text)
		r := &Report{}
		r.assemble([]*sight{s}, usual)
		for id, c := range r.Clients {
			_, _ = r.Dead(id)
			require.GreaterOrEqual(t, c.HeardMS, int64(-1))
			require.GreaterOrEqual(t, c.ExpiresInMS, int64(-1))
			require.LessOrEqual(t, len(c.Address), 100)
		}
		require.LessOrEqual(t, len(v.version), 41)
		require.LessOrEqual(t, len(v.mode), 40)
	})
}
