package servers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// seen is a standalone server whose answers are these, and of whose sessions one is ours.
func seen(t *testing.T, ours int64, cons, dump string) *Report {
	t.Helper()
	s := &sight{Server: Server{Addr: "zk:2181", Words: []string{"srvr"}, Reachable: true}, id: ours, granted: usual, tick: 2000}
	if cons != "" {
		s.links, s.words = parseCons(cons), append(s.words, "cons")
	}
	if dump != "" {
		d, ok := parseDump(dump)
		require.True(t, ok)
		s.dump, s.words = &d, append(s.words, "dump")
	}
	r := &Report{}
	r.assemble([]*sight{s}, 0)
	return r
}

const (
	ours   = 0x10004a76cf10001
	silent = " /10.0.0.7:41[1](queued=0,recved=9,sent=9,sid=0x30004a76cf10003,lop=PING,est=1795945800000,to=10000,lcxid=0x8,lzxid=0xb,lresp=78088341,llat=2,minlat=0,avglat=8,maxlat=25)\n"
	lively = " /10.0.0.7:41[1](queued=0,recved=9,sent=9,sid=0x30004a76cf10003,lop=PING,est=1795945800000,to=10000,lcxid=0x8,lzxid=0xb,lresp=78093341,llat=2,minlat=0,avglat=8,maxlat=25)\n"
)

func TestAClientIsDeadByWhatTheServersSay(t *testing.T) {
	for name, c := range map[string]struct {
		cons, dump string
		session    int64
		text       string
		probably   bool
	}{
		"heard 7 s ago":               {cons38 + silent, dump38, 0x30004a76cf10003, "last heard 7 s ago: free in at most 3 s", true},
		"heard 2 s ago":               {cons38 + lively, dump38, 0x30004a76cf10003, "", false},
		"the newer of two links":      {cons38 + silent + lively, dump38, 0x30004a76cf10003, "", false},
		"the other order":             {cons38 + lively + silent, dump38, 0x30004a76cf10003, "", false},
		"resumed, asked for nothing":  {cons38, dump38, 0xf0004a76cf10002, "", false},
		"no session":                  {cons38, dump38, 0x5000000000000, "its session does not exist (ZOOKEEPER-4837): release it", true},
		"a session that is connected": {" /1:2[1](sid=0x5000000000000,to=4000,est=1,lresp=78095341)\n" + cons38, dump38, 0x5000000000000, "", false},
		"connected nowhere":           {cons38, dump38, 0x30004a76cf10009, "not connected to any server: free in at most 13 s", true},
		"unknown":                     {cons38, dump38, 0x77, "", false},
		"unknown, cons alone":         {cons38, "", 0x77, "not connected to any server", true},
		"ours":                        {cons38, dump38, ours, "", false},
		"dump alone":                  {"", dump38, 0x30004a76cf10009, "", false},
		"nothing":                     {"", "", 0x30004a76cf10003, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := seen(t, ours, c.cons, c.dump)
			text, probably := r.Dead(c.session)
			require.Equal(t, c.text, text)
			require.Equal(t, c.probably, probably)
			require.Equal(t, c.cons+c.dump != "", r.Tells)
		})
	}
}

// A client may be connected to a server that is not in the connect string.
func TestASessionThatTheLeaderHasHeardOfIsNotProbablyDead(t *testing.T) {
	r := &Report{Tells: true, decided: true, Servers: []Server{{Reachable: true, Words: []string{"cons"}}},
		Clients: map[int64]Client{1: {HeardMS: -1, TimeoutMS: 10000, ExpiresInMS: 9000}, 2: {HeardMS: -1, TimeoutMS: 10000, ExpiresInMS: 6000}, 3: {HeardMS: -1, TimeoutMS: 10000, ExpiresInMS: -1}}}
	text, probably := r.Dead(1)
	require.Equal(t, "not connected to any server: free in at most 9 s", text)
	require.False(t, probably)
	_, probably = r.Dead(2)
	require.True(t, probably)
	_, probably = r.Dead(3)
	require.True(t, probably)
	r.Servers = append(r.Servers, Server{})
	_, probably = r.Dead(3)
	require.False(t, probably, "it may be connected to the one that is not reachable")
}
