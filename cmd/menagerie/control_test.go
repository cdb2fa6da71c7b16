//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// controlled is a serve with --control.
type controlled struct {
	t         *testing.T
	addr, url string
}

func controlling(t *testing.T, flags ...string) *controlled {
	t.Helper()
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"}, flags...)...)
	p.prints("\ncontrol on http://127.0.0.1:")
	c := &controlled{t: t}
	_, err := fmt.Sscanf(p.stdout.String(), "listening on %s\ncontrol on %s\n", &c.addr, &c.url)
	require.NoError(t, err)
	return c
}

// ask sends a request, with headers "Name: value", and returns the status and the answer.
func (c *controlled) ask(method, path, body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	return res, string(answer)
}

// post sends a body, which format and args make, and returns the answer.
func (c *controlled) post(path, format string, args ...any) string {
	c.t.Helper()
	res, answer := c.ask(http.MethodPost, path, fmt.Sprintf(format, args...))
	require.Equal(c.t, http.StatusOK, res.StatusCode, answer)
	return answer
}

// get decodes an answer.
func (c *controlled) get(path string, into any) {
	c.t.Helper()
	res, answer := c.ask(http.MethodGet, path, "")
	require.Equal(c.t, http.StatusOK, res.StatusCode, answer)
	require.NoError(c.t, json.Unmarshal([]byte(answer), into), answer)
}

// leftovers are those that /leftovers lists.
type leftovers struct {
	Sessions   []struct{ ID string }
	Ephemerals []string
	Watches    []struct{ Path, Kind, Session string }
	Faults     []string
}

func (c *controlled) leftovers() (l leftovers) {
	c.t.Helper()
	c.get("/leftovers", &l)
	return l
}

func (c *controlled) nodes() (paths map[string]map[string]any) {
	c.t.Helper()
	c.get("/tree", &paths)
	return paths
}

// client is a session of go-zookeeper with its events. Its timeout is so long that no busy machine ends it.
type client struct {
	*zk.Conn
	t      *testing.T
	events <-chan zk.Event
}

func (c *controlled) client() *client {
	c.t.Helper()
	conn, events, err := zk.Connect([]string{c.addr}, 30*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	require.NoError(c.t, err)
	c.t.Cleanup(conn.Close)
	k := &client{conn, c.t, events}
	k.becomes(zk.StateHasSession)
	return k
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// becomes waits until the client has a state.
func (k *client) becomes(want zk.State) {
	k.t.Helper()
	for late := time.After(patience); ; {
		select {
		case e := <-k.events:
			if e.State == want {
				return
			}
		case <-late:
			require.FailNow(k.t, "the client does not become "+want.String())
		}
	}
}

func (k *client) id() string { return fmt.Sprintf("0x%x", k.SessionID()) }

func (k *client) creates(path string, data []byte, flags int32) {
	k.t.Helper()
	_, err := k.Create(path, data, flags, zk.WorldACL(zk.PermAll))
	require.NoError(k.t, err)
}

func TestControlExpiresASession(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	victim, other := c.client(), c.client()
	victim.creates("/mine", nil, zk.FlagEphemeral)
	other.creates("/other", nil, zk.FlagEphemeral)
	require.Equal(t, victim.id(), c.nodes()["/mine"]["ephemeralOwner"])
	gone := victim.id()
	require.JSONEq(t, `{"session":"`+gone+`"}`, c.post("/expire", `{"session":%d}`, victim.SessionID()), "a number is good, too")
	require.NotContains(t, c.nodes(), "/mine")
	require.Contains(t, c.nodes(), "/other")
	victim.becomes(zk.StateExpired)
	res, answer := c.ask(http.MethodPost, "/expire", `{"session":"`+gone+`"}`)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.Contains(t, answer, gone+", which does not live; those that live: [")
	require.Contains(t, answer, other.id())
}

func TestControlDropsAConnectionOfASessionThatLivesOn(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	k.creates("/mine", nil, zk.FlagEphemeral)
	id := k.id()
	c.post("/disconnect", `{"session":%q}`, id)
	k.becomes(zk.StateDisconnected)
	k.becomes(zk.StateHasSession)
	require.Equal(t, id, k.id())
	require.Contains(t, c.nodes(), "/mine")
}

func TestControlPartitionsASessionAndMovesTheClock(t *testing.T) {
	t.Parallel()
	c := controlling(t, "--manual-clock")
	cut, other := c.client(), c.client()
	cut.creates("/cut", nil, zk.FlagEphemeral)
	other.creates("/other", nil, zk.FlagEphemeral)
	id := cut.id()
	require.JSONEq(t, `{"session":"`+id+`"}`, c.post("/partition", `{"session":%q}`, id))
	require.Equal(t, []string{"partition of " + id}, c.leftovers().Faults)
	advance := func() (answer struct{ Now time.Time }) {
		require.NoError(t, json.Unmarshal([]byte(c.post("/advance", `{"by":"20s"}`)), &answer))
		return answer
	}
	first := advance()
	require.Contains(t, c.nodes(), "/cut", "it has 30 s")
	require.Equal(t, 20*time.Second, advance().Now.Sub(first.Now), "it stands still in between")
	require.NotContains(t, c.nodes(), "/cut")
	require.Contains(t, c.nodes(), "/other", "a client that is connected counts as having sent its heartbeats")
	res, answer := c.ask(http.MethodPost, "/heal", `{"session":"`+other.id()+`"}`)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.Contains(t, answer, "is not partitioned; the faults now: [partition of "+id+"]")
	require.JSONEq(t, `{"healed":["partition of `+id+`"]}`, c.post("/heal", `{"session":%q}`, id))
	require.Empty(t, c.leftovers().Faults)
	cut.becomes(zk.StateExpired)
}

func TestControlLosesTheReplyOfTheNthRequest(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	k.creates("/locks", nil, 0)
	require.JSONEq(t, `{"fault":"lose-reply create /locks/* nth 2"}`, c.post("/lose-reply", `{"op":"create","path":"/locks/*","nth":2}`))
	k.creates("/locks/a", nil, 0)
	require.Equal(t, []string{"lose-reply create /locks/* nth 2: matched 1, acted on 0"}, c.leftovers().Faults)
	_, err := k.Create("/locks/b", nil, 0, zk.WorldACL(zk.PermAll))
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	require.Contains(t, c.nodes(), "/locks/b", "it was applied")
	require.Empty(t, c.leftovers().Faults, "it is over")
	k.creates("/locks/c", nil, 0)
}

func TestControlLosesRequestsOfOneSessionUntilAllIsHealed(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k, other := c.client(), c.client()
	name := "lose-request create /n/** of " + k.id()
	require.JSONEq(t, `{"fault":"`+name+`"}`, c.post("/lose-request", `{"op":"create","path":"/n/**","session":%q,"nth":null}`, k.id()))
	other.creates("/n", nil, 0)
	other.creates("/n/other", nil, 0)
	for range 2 { // without nth it strikes all
		_, err := k.Create("/n/mine", nil, 0, zk.WorldACL(zk.PermAll))
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.NotContains(t, c.nodes(), "/n/mine")
	}
	require.JSONEq(t, `{"healed":["`+name+`: matched 2, acted on 2"]}`, c.post("/heal", ""))
	k.creates("/n/mine", nil, 0)
}

func TestControlDelaysARequest(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	k.creates("/a", nil, 0)
	const by = 700 * time.Millisecond
	require.JSONEq(t, `{"fault":"delay setData /a nth 1 by 700ms"}`, c.post("/delay", `{"op":"setData","path":"/a","nth":1,"by":"700ms"}`))
	began := time.Now()
	_, err := k.Set("/a", []byte("late"), -1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), by)
	require.Equal(t, "late", c.nodes()["/a"]["data"])
}

func TestControlRefusesConnections(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	dial := func() error {
		conn, err := net.Dial("tcp", c.addr)
		if err == nil {
			conn.Close()
		}
		return err
	}
	require.JSONEq(t, `{"fault":"refuse"}`, c.post("/refuse", ""))
	require.ErrorIs(t, dial(), syscall.ECONNREFUSED)
	k.creates("/still", nil, 0) // open connections stay
	c.post("/heal", "{}")
	require.NoError(t, dial())

	require.JSONEq(t, `{"fault":"refuse for 1h0m0s"}`, c.post("/refuse", `{"for":"1h"}`))
	c.post("/refuse", `{"for":"300ms"}`)
	require.Eventually(t, func() bool { return len(c.leftovers().Faults) == 1 }, patience, pause, "the short one ends by itself")
	require.ErrorIs(t, dial(), syscall.ECONNREFUSED, "the long one goes on")
	require.JSONEq(t, `{"healed":["refuse for 1h0m0s"]}`, c.post("/heal", ""))
	require.NoError(t, dial())
}

func TestControlRestartsTheServer(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	k := c.client()
	k.creates("/mine", nil, zk.FlagEphemeral)
	id := k.id()
	require.JSONEq(t, `{"empty":false}`, c.post("/restart", ""))
	k.becomes(zk.StateDisconnected)
	k.becomes(zk.StateHasSession)
	require.Equal(t, id, k.id())
	require.Contains(t, c.nodes(), "/mine")
	require.JSONEq(t, `{"empty":true}`, c.post("/restart", `{"empty":true}`))
	require.Len(t, c.nodes(), 1, "the root")
	require.Empty(t, c.leftovers().Sessions)
	c.client().creates("/mine", nil, 0) // on the same port
}

func TestControlSaysThatThePortIsTakenAndOpensItLater(t *testing.T) {
	t.Parallel()
	c := controlling(t)
	c.post("/refuse", "")
	thief, err := net.Listen("tcp", c.addr)
	require.NoError(t, err)
	for _, path := range []string{"/heal", "/restart"} {
		res, answer := c.ask(http.MethodPost, path, "")
		require.Equal(t, http.StatusInternalServerError, res.StatusCode, path)
		require.Regexp(t, `^{"error":".*`+c.addr+`.* in use.*; free the port, then POST /restart opens it"}\n$`, answer)
	}
	require.NoError(t, thief.Close())
	c.post("/restart", "")
	c.client().creates("/n", nil, 0)
}
