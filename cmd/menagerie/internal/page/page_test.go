package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

// at is where the page of most tests is.
const at = "127.0.0.1:4711"

// hold is a view of one lock with a holder and a waiter.
func hold(path, name string) *survey.View {
	held := &survey.Entry{Row: tree.Row{Kind: zksync.KindLock, State: zksync.Held, Owner: tree.Owner{Host: "web-1", PID: 11, Name: name},
		Since: "2026-11-27T01:00:00Z", Session: "0x1", Token: "t1", Node: path + "/n1"}, For: survey.Millis(time.Minute), Ratio: 3}
	waits := &survey.Entry{Row: tree.Row{State: zksync.Waiting, Token: "t2", Node: path + "/n2"}, Ahead: path + "/n1", Behind: "web-1 pid 11"}
	return &survey.View{
		Root: "/", At: time.Now(), Cycles: []survey.Cycle{}, Servers: &servers.Report{Clients: map[int64]servers.Client{1: {Session: "0x1"}}},
		Objects: []*survey.Object{{Object: tree.Object{Path: path, Kind: "lock", State: "held"}, Entries: []*survey.Entry{held, waits}}},
	}
}

// page returns a page that shows v, if there is one.
func shown(o Options, v *survey.View) *Page {
	if o.Listen == nil {
		o.Listen = loopback
	}
	p := New(o)
	if v != nil {
		p.Show(v)
	}
	return p
}

// ask sends a request with some headers, each as "Name: value".
func ask(p *Page, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = at
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestForeignHostsAreRefused(t *testing.T) {
	p := shown(Options{}, hold("/a", ""))
	for host, code := range map[string]int{
		at: 200, "localhost:4711": 200, "LocalHost:4711": 200, "[::1]:4711": 200, "127.8.9.1:4711": 200,
		"evil.example:4711": 403, "127.0.0.1": 403, "127.0.0.1:80": 403, "localhost": 403, "localhost:4712": 403, "10.0.0.1:4711": 403,
		"127.0.0.1.evil.example:4711": 403, "": 403, "localhost.:4711": 403,
	} {
		for _, target := range []string{"/", "/page.js", "/api/state"} {
			w := ask(p, "GET", target, "", "Host: "+host)
			require.Equal(t, code, w.Code, "%s %s", host, target)
			require.Equal(t, code == 200, !strings.Contains(w.Body.String(), "is not where this page is"), host)
		}
	}
	open := shown(Options{Token: "secret", Listen: &net.TCPAddr{IP: net.IPv4zero, Port: 4711}}, hold("/a", ""))
	require.Equal(t, 401, ask(open, "GET", "/", "", "Host: web-1.example:4711").Code, "its cookie protects it")
	require.Equal(t, 403, ask(shown(Options{Token: "secret"}, hold("/a", "")), "GET", "/?token=secret", "", "Host: evil.example:4711").Code)
}

func TestForeignOriginsAreRefused(t *testing.T) {
	p := shown(Options{Release: func(context.Context, Order) (bool, error) { return true, nil }}, hold("/a", ""))
	for _, c := range []struct {
		header         string
		page, api, set int
	}{
		{"X: none", 200, 200, 403},
		{"Origin: http://" + at, 200, 200, 200},
		{"Origin: http://evil.example", 403, 403, 403},
		{"Origin: null", 403, 403, 403},
		{"Origin: http://127.0.0.1:4712", 403, 403, 403},
		{"Sec-Fetch-Site: same-origin", 200, 200, 200},
		{"Sec-Fetch-Site: none", 200, 200, 403},
		{"Sec-Fetch-Site: same-site", 200, 403, 403},
		{"Sec-Fetch-Site: cross-site", 200, 403, 403},
	} {
		require.Equal(t, c.page, ask(p, "GET", "/", "", c.header).Code, c.header)
		require.Equal(t, c.api, ask(p, "GET", "/api/state", "", c.header).Code, c.header)
		require.Equal(t, c.set, release(p, "", c.header).Code, c.header)
	}
	require.Equal(t, 403, release(p, "", "Origin: http://evil.example", "Sec-Fetch-Site: same-origin").Code)
}

func TestEveryAnswerHasTheHeadersThatProtectIt(t *testing.T) {
	p := shown(Options{}, hold("/a", ""))
	for _, target := range []string{"/", "/page.css", "/parts.js", "/questions.js", "/page.js", "/api/state", "/nothing"} {
		for _, host := range []string{at, "evil.example"} {
			h := ask(p, "GET", target, "", "Host: "+host).Header()
			require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
				"form-action 'none'; frame-ancestors 'none'; base-uri 'none'", h.Get("Content-Security-Policy"))
			require.Equal(t, []string{"nosniff", "no-referrer", "no-store"},
				[]string{h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"), h.Get("Cache-Control")})
			require.Empty(t, h.Get("Access-Control-Allow-Origin"))
		}
	}
	require.Equal(t, "text/javascript; charset=utf-8", ask(p, "GET", "/page.js", "").Header().Get("Content-Type"))
	require.Equal(t, "text/css; charset=utf-8", ask(p, "GET", "/page.css", "").Header().Get("Content-Type"))
	for target, code := range map[string]int{"/nothing": 404, "/page.html": 404, "/page.go": 404, "/api/": 404} {
		require.Equal(t, code, ask(p, "GET", target, "").Code, target)
	}
	for _, method := range []string{"PUT", "DELETE", "POST", "OPTIONS"} {
		require.Equal(t, 405, ask(p, method, "/api/state", "", "Origin: http://"+at).Code, method)
	}
	require.Equal(t, 405, ask(p, "GET", "/api/release", "").Code)
}

func TestATokenIsGivenOnce(t *testing.T) {
	p := shown(Options{Token: "s3cret&x"}, hold("/a", ""))
	for _, target := range []string{"/", "/?token=wrong", "/?token=", "/api/state", "/api/events", "/page.js", "/?token=s3cret"} {
		w := ask(p, "GET", target, "")
		require.Equal(t, 401, w.Code, target)
		require.Contains(t, w.Body.String(), "open the address that menagerie ui has printed, which ends with ?token=TOKEN")
		require.NotContains(t, w.Body.String(), "s3cret")
		require.Empty(t, w.Result().Cookies())
	}
	in := ask(p, "GET", "/api/state?x=1&token=s3cret%26x", "")
	require.Equal(t, 303, in.Code)
	require.Equal(t, "/api/state?x=1", in.Header().Get("Location"))
	require.Equal(t, "/evil.example", ask(p, "GET", "http://127.0.0.1:4711//evil.example?token=s3cret%26x", "").Header().Get("Location"))
	require.Len(t, in.Result().Cookies(), 1)
	c := in.Result().Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	require.NotContains(t, c.String(), "s3cret")

	cookie := "Cookie: " + c.Name + "=" + c.Value
	require.Equal(t, 200, ask(p, "GET", "/", "", cookie).Code)
	require.Equal(t, 200, ask(p, "GET", "/api/state", "", cookie).Code)
	require.Equal(t, 401, ask(p, "GET", "/", "", cookie+"x").Code)
	require.Equal(t, 401, ask(p, "GET", "/?token=wrong", "", cookie).Code)
	require.Equal(t, 401, ask(p, "POST", "/api/release?token=s3cret%26x", "{}", "Origin: http://"+at).Code, "only a page that is opened takes it")
	require.Equal(t, 401, ask(shown(Options{Token: "s3cret&x"}, nil), "GET", "/", "", cookie).Code, "of another page")
}

// release asks to remove the holder of hold("/a", ""), as the page does. body replaces what it sends.
func release(p *Page, body string, headers ...string) *httptest.ResponseRecorder {
	if body == "" {
		body = `{"path":"/a","node":"/a/n1","token":"t1","state":"held","reason":"it hangs"}`
	}
	return ask(p, "POST", "/api/release", body, append([]string{"Content-Type: application/json", "X-Menagerie: 1"}, headers...)...)
}

func TestAReleaseRemovesWhatWasShownOrRefuses(t *testing.T) {
	var orders []Order
	var fails error
	o := Options{Release: func(_ context.Context, o Order) (bool, error) {
		orders = append(orders, o)
		return true, fails
	}}
	p, own := shown(o, hold("/a", "")), "Origin: http://"+at
	refused := func(code int, says string, w *httptest.ResponseRecorder) {
		t.Helper()
		require.Equal(t, code, w.Code, w.Body.String())
		require.Contains(t, w.Body.String(), says)
		require.Empty(t, orders)
	}
	refused(403, "read-only: start menagerie ui with --allow-release", release(shown(Options{}, hold("/a", "")), "", own))
	refused(403, "X-Menagerie", release(p, "", own, "X-Menagerie: "))
	for _, kind := range []string{"text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		refused(415, "application/json", release(p, "", own, "Content-Type: "+kind))
	}
	for _, body := range []string{"x", "{}", `[]`, `{"path":"/a","node":"/a/n1"}`, `{"path":"/a","node":"/a/n1","token":"t1","force":true}`,
		`{"path":"/a","node":"/a/n1","token":"t1"} {}`, `{"path":"/a","node":"/a/n1","token":"t1","reason":"` + strings.Repeat("x", maxReason+1) + `"}`,
		`{"path":"` + strings.Repeat("x", maxOrder) + `"}`} {
		refused(400, "the body must be one object", release(p, body, own))
	}
	for _, body := range []string{`{"path":"/b","node":"/a/n1","token":"t1"}`, `{"path":"/a","node":"/a/n3","token":"t1"}`, `{"path":"/a","node":"/a/n1","token":"t2"}`,
		`{"path":"/a","node":"/a/n2","token":"t2"}`, `{"path":"/a","node":"/a/n1","token":"t1","state":"waiting"}`} {
		refused(409, "nothing was removed", release(p, body, own))
	}
	fails = fmt.Errorf("%w: it left meanwhile", ErrRefused)
	w := release(p, "", own)
	require.Equal(t, 409, w.Code)
	require.Contains(t, w.Body.String(), "nothing was removed: it left meanwhile")
	fails = errors.New("no connection")
	w = release(p, "", own)
	require.Equal(t, 503, w.Code)
	require.Contains(t, w.Body.String(), "nothing was removed: no connection")
	fails = fmt.Errorf("zksync: %w; the last attempt failed", context.DeadlineExceeded)
	w = release(p, "", own)
	require.Equal(t, 503, w.Code)
	require.JSONEq(t, `{"error":"nothing was removed: the servers do not answer"}`, w.Body.String())

	orders, fails = nil, nil
	w = release(p, "", own)
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `{"released":true,"told":true}`, w.Body.String())
	require.Equal(t, []Order{{"/a", "/a/n1", "t1", zksync.Held, "it hangs"}}, orders)
	require.Equal(t, 200, release(p, `{"path":"/a","node":"/a/n2","token":"t2","state":"waiting"}`, own).Code)
}

func TestNothingIsRemovedWhileTheViewIsOld(t *testing.T) {
	called := false
	o, own := Options{Release: func(context.Context, Order) (bool, error) { called = true; return true, nil }}, "Origin: http://"+at
	require.Equal(t, 503, release(shown(o, nil), "", own).Code, "nothing was read yet")
	v := hold("/a", "")
	v.Outage = "the servers do not answer"
	p := shown(o, v)
	w := release(p, "", own)
	require.Equal(t, 503, w.Code)
	require.Contains(t, w.Body.String(), "nothing was removed: the servers do not answer")
	p.Show(hold("/a", ""))
	p.feed.newest.Now = time.Now().Add(-fresh - time.Second)
	require.Equal(t, 503, release(p, "", own).Code, "the survey has stopped")
	require.False(t, called)
}

func TestTheStateHasWhatThePageShows(t *testing.T) {
	require.Equal(t, 503, ask(shown(Options{}, nil), "GET", "/api/state", "").Code)
	w := ask(shown(Options{Command: "menagerie release"}, hold("/a", "x")), "GET", "/api/state", "")
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var got struct {
		Root, Command string
		Release       bool
		Now, At       time.Time
		Servers       struct{ Clients map[string]any }
		Objects       []struct {
			Path    string
			Entries []struct {
				State string
				ForMS int64 `json:"forMs"`
				Ratio float64
				Ahead string
			}
		}
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, "menagerie release", got.Command)
	require.False(t, got.Release)
	require.Empty(t, got.Servers.Clients)
	require.Len(t, got.Objects[0].Entries, 2)
	require.Equal(t, int64(60_000), got.Objects[0].Entries[0].ForMS)
	require.Equal(t, "/a/n1", got.Objects[0].Entries[1].Ahead)
}

func TestNamesOfNodesAreEscaped(t *testing.T) {
	for _, name := range []string{`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `</noscript><script>`, "'\u202e\u200f%00%2e", strings.Repeat("<b>", 20_000)} {
		v := hold("/"+name, name)
		v.Root, v.Denied = "/"+name, []string{name}
		v.Cycles = []survey.Cycle{{Text: name}}
		v.Objects[0].Entries[0].Heard, v.Objects[0].Entries[1].Behind, v.Objects[0].Detail = name, name, name
		v.Servers.Servers = []servers.Server{{Addr: name, Error: name}, {Addr: name, Mode: name, Version: name}}
		v.Servers.Findings = []servers.Finding{{Text: name, Fix: name}}
		body := ask(shown(Options{}, v), "GET", "/", "").Body.String()
		for _, tag := range []string{"<img", "<b>", "<script>"} {
			require.NotContains(t, body, tag)
		}
		require.Equal(t, 3, strings.Count(body, "<script "), "the page's own")
		require.Equal(t, 1, strings.Count(body, "</noscript>"))
		require.Less(t, len(body), 60_000, "a long name is cut")
		state := ask(shown(Options{}, v), "GET", "/api/state", "").Body.String()
		require.NotContains(t, state, "<")
	}
}

func TestThePageWithoutScriptsShowsTheState(t *testing.T) {
	require.Contains(t, ask(shown(Options{}, nil), "GET", "/", "").Body.String(), "the servers have not answered yet")
	v := hold("/a", "backup")
	v.Outage, v.At = "the servers do not answer", time.Now().Add(-12*time.Second)
	v.Missing = true
	v.Objects[0].Entries[0].Heard = "last heard 6 s ago: free in at most 4 s"
	v.Objects[0].Usual = survey.Usual{Holds: 3, Median: survey.Millis(20 * time.Second), P99: survey.Millis(25 * time.Second)}
	body := ask(shown(Options{}, v), "GET", "/", "").Body.String()
	for _, text := range []string{"as of 12s ago; the servers do not answer", "<bdi>/</bdi> does not exist", "usually held for 20s (99 of 100 for at most 25s)", "held for 1m0s, 3.0 times the usual",
		"<bdi>web-1 pid 11</bdi>, <bdi>backup</bdi> 0x1 t1", "behind <bdi>web-1 pid 11</bdi>", "last heard 6 s ago"} {
		require.Contains(t, body, text)
	}
}
