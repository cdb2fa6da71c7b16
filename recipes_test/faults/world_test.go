package faults_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const (
	lockDir = "/locks/a"
	timeout = 10 * time.Second // of every session
	hop     = time.Millisecond // one way through the network, for each client a little more, so that no two requests share an instant
	patient = 45 * time.Second // what a party waits that need not give up
	slack   = 100 * time.Millisecond
	stuck   = 5 * time.Minute // a party that has not come back by then never will
)

// world is a server, its clients and what happens to them, in one bubble.
type world struct {
	t       testing.TB
	srv     *zktest.Server
	book    *book
	clients []*client
	began   time.Time

	running     sync.WaitGroup // parties
	introducing atomic.Bool    // see introduce

	pending atomic.Int32 // faults that are still to happen or to heal

	mu     sync.Mutex
	owners map[int64]*client // of server sessions
	plans  []plan
	fired  []string

	beats int           // heartbeats of each client that count as requests
	late  time.Duration // how late holders may learn of a loss, besides what the plans excuse
}

// plan is a fault that strikes at one request of one client.
type plan struct {
	client, nth int
	fault       fault
}

func (p plan) String() string {
	return fmt.Sprintf("%s at request %d of client %d", p.fault.name, p.nth, p.client)
}

// name is that of the plan's case.
func (p plan) name() string {
	return fmt.Sprintf("client-%d-request-%d-%s", p.client, p.nth, p.fault.name)
}

// request is one that a fault can strike.
type request struct {
	op    zktest.Op
	empty bool // concerns the directory, which is empty
}

func (r request) String() string { return r.op.String() }

// meets reports whether it makes sense for a fault to strike the request.
func (r request) meets(f fault) bool { return !f.reaped || r.empty }

// client is one process: a session, with its network.
type client struct {
	w     *world
	index int
	s     *zksync.Session

	mu       sync.Mutex
	requests []request
	beats    int              // heartbeats that were counted among them
	next     []zktest.Verdict // for its next requests, before any plan
	cut      chan struct{}    // closed when the network is whole again; nil while it is
	cancels  map[*attempt]context.CancelFunc
}

func newWorld(t testing.TB, clients int, plans []plan, opts ...zktest.Option) *world {
	w := &world{t: t, book: newBook(lockDir), owners: make(map[int64]*client), plans: plans, began: time.Now()}
	w.srv = zktest.Run(t, opts...)
	w.srv.OnCommit(w.book.commit)
	for i := range clients {
		w.join(i)
	}
	w.srv.InterceptFunc(w.judge)
	return w
}

// join connects a client. Its requests are not counted before all are connected.
func (w *world) join(index int) *client {
	c := &client{w: w, index: index, cancels: make(map[*attempt]context.CancelFunc)}
	c.s = w.srv.Session(w.t, zksync.WithDialer(c.dial), zksync.WithTimeout(timeout), zksync.WithTracer(w.book))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, c)
	return c
}

// dial connects unless the client is cut off from the network altogether.
func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	cut := c.cut
	c.mu.Unlock()
	if cut != nil {
		select {
		case <-cut:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.w.srv.DialContext(ctx, network, address)
}

// owner finds out whose session it is. A new session is given its network delay.
func (w *world) owner(session int64) *client {
	w.mu.Lock()
	c, known := w.owners[session]
	clients := w.clients
	w.mu.Unlock()
	if known || session == 0 {
		return c
	}
	for _, x := range clients {
		if x.s.ID() == session {
			away := hop + time.Duration(x.index)*hop/9
			w.srv.Delay(session, away, away)
			w.mu.Lock()
			w.owners[session] = x
			w.mu.Unlock()
			return x
		}
	}
	return nil
}

// apart gives every client its network delay before the first request of a play: a request without it may share its
// instant with one of another client.
func (w *world) apart() {
	for _, c := range w.clients {
		w.owner(c.s.ID())
	}
}

// judge counts the requests of every client and lets the plans strike.
func (w *world) judge(q *zktest.Request) zktest.Verdict {
	switch q.Op {
	case zktest.Connect, zktest.Ping, zktest.SetAuth:
		return zktest.Verdict{}
	}
	if w.introducing.Load() {
		return zktest.Verdict{}
	}
	c := w.owner(q.Session)
	if c == nil {
		return zktest.Verdict{}
	}
	c.mu.Lock()
	n, r := 0, request{q.Op, w.empty(q)} // 0 for a heartbeat that is not counted
	if c.counts(q) {
		c.requests = append(c.requests, r)
		n = len(c.requests)
	}
	if len(c.next) > 0 {
		v := c.next[0]
		c.next = c.next[1:]
		c.mu.Unlock()
		return v
	}
	c.mu.Unlock()
	for _, p := range w.plans {
		if p.client == c.index && p.nth == n && r.meets(p.fault) {
			w.mu.Lock()
			w.fired = append(w.fired, fmt.Sprintf("%s (%s)", p, q.Op))
			w.mu.Unlock()
			return p.fault.strike(w, c)
		}
	}
	return zktest.Verdict{}
}

// counts reports whether a request of the client is counted: each but the heartbeats, and of those the first ones where
// a scenario says so. c.mu is held.
func (c *client) counts(q *zktest.Request) bool {
	if proving.Counts(q) || q.Op == zktest.CloseSession {
		return true
	}
	c.beats++
	return c.beats <= c.w.beats
}

// empty reports whether a request concerns the directory while that is empty.
func (w *world) empty(q *zktest.Request) bool {
	mine := q.Path == lockDir || q.Op == zktest.Multi && len(q.Ops) > 0 && q.Ops[0] == zktest.Create
	return mine && len(w.srv.Children(lockDir)) == 0
}

// later does something after a while, and before the world is looked at.
func (w *world) later(d time.Duration, f func()) {
	w.pending.Add(1)
	time.AfterFunc(d, func() {
		defer w.pending.Add(-1)
		f()
	})
}

// isolate cuts a client off from the network altogether, for a while.
func (w *world) isolate(c *client, d time.Duration) {
	heal := w.srv.Partition(c.s.ID())
	cut := make(chan struct{})
	c.mu.Lock()
	c.cut = cut
	c.mu.Unlock()
	w.later(d, func() {
		c.mu.Lock()
		c.cut = nil
		c.mu.Unlock()
		close(cut)
		heal()
	})
}

// finish waits for every party and every fault, also for those that strike at what the sessions do
// afterwards. It returns how long the parties took.
func (w *world) finish() (took time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.running.Wait()
		took = time.Since(w.began)
		time.Sleep(soon)
		for w.pending.Load() > 0 {
			time.Sleep(soon)
		}
	}()
	select {
	case <-done:
		return took
	case <-time.After(stuck):
		w.t.Fatalf("somebody still waits after %v\n%s", stuck, w.story())
		return stuck
	}
}

// story tells what happened, for failure messages.
func (w *world) story() string {
	var b strings.Builder
	w.mu.Lock()
	fmt.Fprintf(&b, "struck: %s\n", strings.Join(w.fired, "; "))
	w.mu.Unlock()
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Sub(w.began).String()
	}
	w.book.mu.Lock()
	for _, a := range w.book.attempts {
		fmt.Fprintf(&b, "%s: asked %s, answered %s, limit %s, error %v\n", a.party, at(a.asked), at(a.answered), at(a.limit), a.err)
	}
	for _, h := range w.book.holds {
		fmt.Fprintf(&b, "%s: held %s from %s, lost %s, unlocked %s in %v, error %v, node %s\n", h.party, h.token, at(h.granted),
			at(w.book.lost[h.token]), at(h.unlocked), h.took, h.err, h.node)
	}
	for _, r := range w.book.reigns {
		fmt.Fprintf(&b, "server: first is %q from %s\n", r.node, at(r.from))
	}
	w.book.mu.Unlock()
	b.WriteString("tree:\n" + w.srv.Tree())
	for _, q := range w.srv.Log() {
		if q.Op != zktest.Ping {
			fmt.Fprintf(&b, "%s %s\n", at(q.Time), q)
		}
	}
	return b.String()
}

// close ends the sessions, and waits for those whose end was struck to time out, before the server
// looks for leftovers.
func (w *world) close() {
	for _, c := range w.clients {
		require.NoError(w.t, c.s.Close())
	}
	for w.pending.Load() > 0 {
		time.Sleep(slack)
	}
	if len(w.srv.Sessions()) > 0 {
		time.Sleep(timeout + slack)
	}
}
