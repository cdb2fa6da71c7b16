//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestControlShowsTheServer(t *testing.T) {
	t.Parallel()
	c := controlling(t, "--extended-types")
	require.Equal(t, leftovers{[]struct{ ID string }{}, []string{}, []struct{ Path, Kind, Session string }{}, []string{}}, c.leftovers())
	k := c.client()
	k.creates("/text", []byte("one"), 0)
	_, err := k.Set("/text", []byte("two <&>"), 0)
	require.NoError(t, err)
	k.creates("/bytes", []byte{0xff, 0}, zk.FlagEphemeral)
	_, err = k.CreateContainer("/box", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = k.CreateTTL("/lease", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour)
	require.NoError(t, err)
	_, _, _, err = k.ExistsW("/text")
	require.NoError(t, err)

	nodes := c.nodes()
	require.Len(t, nodes, 5)
	require.Equal(t, "two <&>", nodes["/text"]["data"])
	require.EqualValues(t, 1, nodes["/text"]["version"])
	require.Equal(t, "/wA=", nodes["/bytes"]["base64"])
	require.NotContains(t, nodes["/bytes"], "data")
	require.Equal(t, k.id(), nodes["/bytes"]["ephemeralOwner"])
	require.Equal(t, true, nodes["/box"]["container"])
	require.NotContains(t, nodes["/box"], "ephemeralOwner")
	require.Equal(t, "1h0m0s", nodes["/lease"]["ttl"])
	require.NotContains(t, nodes["/lease"], "ephemeralOwner")
	res, text := c.ask(http.MethodGet, "/tree", "", "Accept: text/plain")
	require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"))
	require.Contains(t, text, "\n  /bytes ephemeral "+k.id()+" 2 bytes ff00\n")
	res, _ = c.ask(http.MethodGet, "/tree", "", "Accept: application/json, text/plain, */*")
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))

	var sessions []map[string]any
	c.get("/sessions", &sessions)
	require.Len(t, sessions, 1)
	require.Equal(t, k.id(), sessions[0]["id"])
	require.Equal(t, "30s", sessions[0]["timeout"])
	require.Equal(t, true, sessions[0]["connected"])
	require.Equal(t, []any{"/bytes"}, sessions[0]["ephemerals"])
	require.Equal(t, leftovers{
		Sessions: []struct{ ID string }{{k.id()}}, Ephemerals: []string{"/bytes"},
		Watches: []struct{ Path, Kind, Session string }{{"/text", "data", k.id()}}, Faults: []string{},
	}, c.leftovers())
}

func TestControlShowsTheRequests(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	var log []struct {
		Number                           int
		Op, Path, Session, Created, Zxid string
		Paths, Ops                       []string
		Error, Fate                      string
		Time                             time.Time
	}
	c.get("/requests", &log)
	require.Equal(t, "connect", log[0].Op)
	require.Equal(t, 1, log[0].Number)
	last := log[len(log)-1].Number
	k.creates("/n-", nil, zk.FlagSequence)
	_, _, err := k.Get("/none")
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, err = k.Multi(&zk.CreateRequest{Path: "/m", Acl: zk.WorldACL(zk.PermAll)}, &zk.DeleteRequest{Path: "/m", Version: 0})
	require.NoError(t, err)
	c.get(fmt.Sprintf("/requests?since=%d", last), &log)
	require.GreaterOrEqual(t, len(log), 3)
	require.Equal(t, last+1, log[0].Number)
	require.Equal(t, []string{"create", "/n-", k.id(), "/n-0000000000"}, []string{log[0].Op, log[0].Path, log[0].Session, log[0].Created})
	require.Regexp(t, "^0x[0-9a-f]{15}$", log[0].Zxid)
	require.WithinDuration(t, time.Now(), log[0].Time, patience)
	require.Equal(t, []string{"getData", "/none", "noNode", "0x0"}, []string{log[1].Op, log[1].Path, log[1].Error, log[1].Zxid})
	require.Equal(t, []string{"/m", "/m"}, log[2].Paths)
	require.Equal(t, []string{"create", "delete"}, log[2].Ops)
	c.get("/requests?since=1000000", &log)
	require.Empty(t, log)
}

// A page in a browser on this machine must not control the server, whatever name its site has.
func TestControlRefusesWhatAPageOfAnotherSiteSends(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	_, port, err := net.SplitHostPort(c.addr)
	require.NoError(t, err)
	for _, header := range []string{
		"Host: evil.example", "Host: evil.example:" + port, "Host: 192.168.0.1", "Host: localhost.evil.example", "Host: 127.0.0.1.evil.example:80", "Host: [::2]:1",
		"Origin: http://evil.example", "Origin: null", "Origin: http://localhost:1",
	} {
		for method, path := range map[string]string{http.MethodPost: "/refuse", http.MethodGet: "/tree"} {
			res, answer := c.ask(method, path, "", header)
			require.Equal(t, http.StatusForbidden, res.StatusCode, header)
			name, value, _ := strings.Cut(header, ": ")
			require.Contains(t, answer, `the header `+name+` is \"`+value+`\", want `)
		}
	}
	require.Empty(t, c.leftovers().Faults)
	for _, header := range []string{"Host: localhost", "Host: LOCALHOST:80", "Host: [::1]", "Host: [::1]:80", "Host: 127.9.9.9:80", "Origin: " + c.url} {
		res, _ := c.ask(http.MethodGet, "/tree", "", header)
		require.Equal(t, http.StatusOK, res.StatusCode, header)
	}
}

func TestControlNamesWhatIsWrongWithARequest(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	id := `"` + k.id() + `"`
	for _, r := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/expire", "", 405, "/expire takes POST, not GET"},
		{"DELETE", "/tree", "", 405, "/tree takes GET, not DELETE"},
		{"POST", "/nosuch", "", 404, `nothing is at "/nosuch", want one of /advance, /delay, `},
		{"POST", "/expire", "", 400, `"session" is missing, want the id of a session, as the text "0x1" or as a number`},
		{"POST", "/expire", "{}", 400, `"session" is missing, want`},
		{"POST", "/expire", `{"session":null}`, 400, `"session" is missing, want`},
		{"POST", "/expire", `{"session":"1"}`, 400, `"session" is "1", want`},
		{"POST", "/expire", `{"session":1.5}`, 400, `"session" is 1.5, want`},
		{"POST", "/expire", `{"session":["0x1"]}`, 400, `"session" is ["0x1"], want`},
		{"POST", "/expire", `{"session":"0x1"}`, 404, `"session" is 0x1, which does not live; those that live: [` + k.id() + `]`},
		{"POST", "/partition", `{"session":"0x1"}`, 404, `"session" is 0x1, which does not live`},
		{"POST", "/disconnect", `{"session":0}`, 404, `"session" is 0x0, which does not live`},
		{"POST", "/heal", `{"session":` + id + `}`, 404, "which is not partitioned; the faults now: []"},
		{"POST", "/heal", `{"session":0}`, 404, "which is not partitioned"},
		{"POST", "/expire", `{"sesion":"0x1"}`, 400, `unknown field "sesion": /expire takes session`},
		{"POST", "/expire", `{"session":` + id + `,"nth":1}`, 400, `unknown field "nth": /expire takes session`},
		{"POST", "/expire", `{"session":"0x1"} {}`, 400, "want one object such as"},
		{"POST", "/expire", `["0x1"]`, 400, "want one object such as"},
		{"POST", "/expire", `null`, 400, "want one object such as"},
		{"POST", "/expire?session=0x1", "", 400, `the query "session=0x1" has no meaning here`},
		{"POST", "/lose-reply", `{"path":"/a"}`, 400, `"op" is missing, want one of any, create, delete,`},
		{"POST", "/lose-reply", `{"op":"creat","path":"/a"}`, 400, `"op" is "creat", want one of any, create`},
		{"POST", "/lose-reply", `{"op":"nodeDeleted","path":"/a"}`, 400, `"op" is "nodeDeleted", want one of any, create`},
		{"POST", "/lose-reply", `{"op":"create"}`, 400, `"path" is missing, want a pattern such as "/locks/*"`},
		{"POST", "/lose-reply", `{"op":"create","path":""}`, 400, `"path" is "", want a pattern`},
		{"POST", "/lose-reply", `{"op":"create","path":"a"}`, 400, `"path" is "a": On(create, "a") matches no path: a pattern starts with a slash`},
		{"POST", "/lose-reply", `{"op":"ping","path":"/a"}`, 400, `such a request has no path; the pattern is "**"`},
		{"POST", "/lose-request", `{"op":"create","path":"/a","nth":0}`, 400, `"nth" is 0, want a whole number, at least 1`},
		{"POST", "/lose-request", `{"op":"create","path":"/a","nth":"2"}`, 400, `"nth" is "2", want a whole number`},
		{"POST", "/lose-request", `{"op":"create","path":"/a","by":"1s"}`, 400, `unknown field "by": /lose-request takes op, path, nth, session`},
		{"POST", "/lose-request", `{"op":"create","path":"/a","session":"0x1"}`, 404, `"session" is 0x1, which does not live`},
		{"POST", "/delay", `{"op":"create","path":"/a"}`, 400, `"by" is missing, want more than zero and at most 24h`},
		{"POST", "/delay", `{"op":"create","path":"/a","by":5}`, 400, `"by" is 5, want more than zero`},
		{"POST", "/delay", `{"op":"create","path":"/a","by":"-1s"}`, 400, `"by" is "-1s", want more than zero`},
		{"POST", "/refuse", `{"for":"25h"}`, 400, `"for" is "25h", want more than zero and at most 24h`},
		{"POST", "/restart", `{"empty":"yes"}`, 400, `"empty" is "yes", want true or false`},
		{"POST", "/advance", `{"by":"1s"}`, 409, "start menagerie serve with --manual-clock"},
		{"GET", "/requests?since=x", "", 400, `"since" is x, want a whole number, at least 0`},
		{"GET", "/requests?from=1", "", 400, `unknown field "from": /requests takes since`},
		{"GET", "/tree?path=/a", "", 400, `unknown field "path": /tree takes no fields`},
		{"POST", "/refuse", `{"for":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "the body has more than 65536 bytes"},
	} {
		res, answer := c.ask(r.method, r.path, r.body)
		require.Equal(t, r.status, res.StatusCode, "%s %s", r.path, answer)
		var said map[string]string
		require.NoError(t, json.Unmarshal([]byte(answer), &said), answer)
		require.Contains(t, said["error"], r.says, r.path)
		require.Len(t, said, 1)
		if r.status == 405 {
			require.Equal(t, strings.Fields(r.says)[2], res.Header.Get("Allow")+",")
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "nonsense", ""} {
		res, answer := c.ask(http.MethodPost, "/refuse", "{}", "Content-Type: "+kind)
		require.Equal(t, http.StatusUnsupportedMediaType, res.StatusCode, kind)
		require.Contains(t, answer, `want application/json`)
	}
	require.Equal(t, leftovers{Sessions: []struct{ ID string }{{k.id()}}, Ephemerals: []string{}, Watches: []struct{ Path, Kind, Session string }{}, Faults: []string{}},
		c.leftovers(), "nothing of that had an effect")
	res, _ := c.ask(http.MethodPost, "/refuse", "{}", "Content-Type: application/json; charset=utf-8")
	require.Equal(t, http.StatusOK, res.StatusCode)
}

func TestControlIsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"} {
		run(t, "serve", "--listen", "127.0.0.1:0", "--control", address).failed(exitUsage, address, "this machine only", "127.0.0.1:0")
	}
	run(t, "serve", "--listen", "127.0.0.1:0", "--control", "nonsense").failed(exitUsage, "want HOST:PORT")
	run(t, "serve", "--listen", "127.0.0.1:0", "--manual-clock").failed(exitUsage, "--manual-clock needs --control")
	taken := controlling(t)
	run(t, "serve", "--listen", "127.0.0.1:0", "--control", strings.TrimPrefix(taken.url, "http://")).failed(exitFailure, "in use", "--control")
}

func TestServeWithControlEndsWithZeroOnASignal(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--control", "localhost:0")
	p.prints("\ncontrol on http://")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}
