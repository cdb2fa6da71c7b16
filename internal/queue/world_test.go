package queue_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// dir is where everybody queues; latency is how long a message takes, so that instants tell what waited for what.
const (
	dir     = "/q"
	latency = time.Millisecond
	timeout = 10 * time.Second
)

// tb is a test, or one check of rapid.
type tb interface {
	zktest.TB
	FailNow()
}

// world is a server in virtual time and its clients, each with one ticket at most. It notes what happens:
//
//	1ms     b> list: a-lock-0 b-lock-1      a request reaches the server
//	3ms     b< deleted a-lock-0             an event reaches the client
//	3ms     b: granted                      the queue tells its user
//
// The node of a client's first attempt is named after it, that of the second a2, and so on. While it notes, it checks
// what must always be true: see [world.listed] and [world.granted].
type world struct {
	t          tb
	srv        *zktest.Server
	capacity   int64
	heartbeats bool
	heal       func()
	held       *zktest.Interception

	mu      sync.Mutex
	start   time.Time // of the block
	lines   []*line
	seen    int // requests of the server's log whose outcomes are noted
	clients []*client
	uuids   map[string]string // and the names that stand for them
}

func newWorld(t tb) *world {
	w := &world{t: t, srv: zktest.Run(t), capacity: 1, uuids: make(map[string]string)}
	w.srv.InterceptFunc(func(r *zktest.Request) zktest.Verdict {
		w.request(r)
		return zktest.Verdict{}
	})
	w.srv.Load(map[string]string{dir: ""})
	return w
}

// begin begins a block.
func (w *world) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start = time.Now()
	for _, c := range w.clients {
		c.since = time.Time{}
	}
}

// pass lets everything settle that takes some round trips.
func (w *world) pass() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// close has everybody leave, and looks that nothing is left of them.
func (w *world) close() {
	for _, c := range w.clients {
		w.leave(c.name)
	}
	w.pass()
	for _, c := range w.clients {
		c.conn.Close()
	}
	for _, name := range w.srv.Children(dir) {
		e, ok := queue.ParseEntry(name)
		require.True(w.t, ok && w.uuids[e.UUID] == "", "%s is left", w.short(name))
	}
}

// client returns a client, which is opened if it is new.
func (w *world) client(name string) *client {
	w.mu.Lock()
	c := w.known(name)
	w.mu.Unlock()
	if c != nil {
		return c
	}
	return w.open(name)
}

// known is a client that has been opened; mu is held.
func (w *world) known(name string) *client {
	i := slices.IndexFunc(w.clients, func(c *client) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return w.clients[i]
}

func (w *world) open(name string) *client {
	c := &client{name: name, giveUp: func() {}}
	w.mu.Lock()
	w.clients = append(w.clients, c)
	w.mu.Unlock()
	cfg := zkconn.Config{
		Servers: []string{"10.0.0.1:2181"}, Timeout: timeout,
		Dial:      func(context.Context, string, string) (net.Conn, error) { return w.dial(c) },
		OnSession: func(id int64, _ []byte) { w.connected(c, id) },
	}
	c.conn = zkconn.Open(cfg)
	_, err := c.conn.Epoch(context.Background())
	require.NoError(w.t, err)
	return c
}

func (w *world) connected(c *client, id int64) {
	w.srv.Delay(id, latency, latency)
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.id == 0 {
		c.id = id
		return
	}
	what := ": connected again"
	if c.id != id {
		what = ": connected again, in another session"
	}
	w.say(c.name, "%s", what).shown = "later"
	c.id, c.since = id, time.Now()
}

func (w *world) rule(op, name, verdict string) {
	r := zktest.On(map[string]zktest.Op{
		"create": zktest.Create, "list": zktest.GetChildren, "delete": zktest.Delete, "watch": zktest.SetWatches,
		"exists": zktest.Exists, "read": zktest.GetData, "deleted": zktest.EventDeleted,
	}[op], "**").Of(w.client(name).session()).Nth(1).Maybe()
	switch verdict {
	case "lose":
		r.Lose()
	case "lose-reply":
		r.LoseReply()
	case "lose-request":
		r.LoseRequest()
	case "duplicate":
		r.Duplicate()
	case "hold":
		r.Hold()
	default:
		require.Fail(w.t, "no verdict "+verdict)
	}
	in := w.srv.Intercept(r)
	if verdict == "hold" {
		w.held = in
	}
}
