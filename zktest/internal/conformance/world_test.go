package conformance

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// server is one of the two servers that are compared.
type server interface {
	dial() (net.Conn, error)
	restart() // stops and starts it again, with its data

	// setSequence restarts it with another number for the next sequential child of a node.
	setSequence(path string, n int32)
}

// entry is one line of a transcript.
type entry struct {
	who, dir, what string
	fields         []field
}

// world is one run of a scenario on one server. Its methods are what scenarios are made of.
type world struct {
	t       testing.TB
	srv     server
	base    string // the node that the scenario works below; "~" in paths
	exact   bool   // nobody else makes transactions meanwhile
	origin  int64  // zxid of the node's creation
	began   time.Time
	entries []entry
	frames  int

	clients  []*client
	sessions map[int64]*session
}

// gaveUp is what giveUp panics with: the rest of the scenario makes no sense any more.
type gaveUp struct{}

func (w *world) note(who, dir, what string, f []field) {
	if dir == "<" {
		w.frames++
	}
	w.entries = append(w.entries, entry{who: who, dir: dir, what: what, fields: f})
}

// say puts a line into the transcript.
func (w *world) say(what string) { w.note("", "-", what, nil) }

// offRecord does something that leaves no trace in the transcript.
func (w *world) offRecord(f func()) {
	frames, entries := w.frames, w.entries
	f()
	w.frames, w.entries = frames, entries
}

// giveUp ends the scenario on this server.
func (w *world) giveUp(who, why string) {
	w.note(who, "!", why+" for "+patience.String(), nil)
	panic(gaveUp{})
}

// dial opens a connection without sending anything.
func (w *world) dial(name string) *client {
	nc, err := w.srv.dial()
	if err != nil {
		w.note(name, "!", "cannot connect", nil)
		panic(gaveUp{})
	}
	c := &client{w: w, name: name, nc: nc, asked: map[int32]op{}}
	w.clients = append(w.clients, c)
	return c
}

// join opens a connection with a new session.
func (w *world) join(name string) *client {
	c := w.dial(name)
	c.greet(hello{})
	return c
}

// resume opens a connection that takes over a session, as a client does after a disconnect.
func (w *world) resume(name string, s *session, seen int64) *client {
	c := w.dial(name)
	c.greet(hello{session: s.id, password: s.secret, seen: seen})
	return c
}

// restart restarts the server, which must be the scenario's own.
func (w *world) restart() {
	w.note("", ">", "restart", nil)
	w.srv.restart()
}

// setSequence restarts the server, which must be the scenario's own, and lets the next sequential child of a node
// have a number.
func (w *world) setSequence(path string, n int32) {
	w.note("", ">", fmt.Sprintf("restart, and %s counts on from %d", path, n), nil)
	w.srv.setSequence(expand(path, w.base), n)
}

// sessionOf remembers a session, so that cleaning up can end it.
func (w *world) sessionOf(id int64, secret []byte) *session {
	s := w.sessions[id]
	if s == nil {
		s = &session{id: id, secret: secret}
		w.sessions[id] = s
	}
	return s
}

// run runs a scenario to its end, or to where a server falls silent.
func (w *world) run(f func(*world)) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(gaveUp); !ok {
				panic(p)
			}
		}
	}()
	f(w)
	for _, c := range w.clients {
		if !c.gone && c.session != nil {
			c.fence()
		}
	}
}

// newWorld makes the scenario's node.
func newWorld(t testing.TB, srv server, base string, exact bool) *world {
	w := &world{t: t, srv: srv, base: base, exact: exact, began: time.Now(),
		sessions: map[int64]*session{}}
	keeper := w.join("keeper")
	r := keeper.do(create("~", null, persistent))
	if r.err != 0 || r.gone {
		t.Fatalf("cannot create %s: error %d", base, r.err)
	}
	w.origin = r.zxid
	keeper.close()
	w.entries, w.clients, w.frames = nil, nil, 0
	return w
}

// close ends every session and removes the scenario's nodes, so that the next one finds the server as
// this one has found it.
func (w *world) close() {
	w.offRecord(w.clean)
}

func (w *world) clean() {
	for _, c := range w.clients {
		if !c.gone {
			_ = c.nc.Close()
		}
	}
	for _, s := range w.sessions {
		if !s.closed {
			if c := w.resume("keeper", s, 0); !c.gone {
				c.do(closeSession())
				c.ended()
			}
		}
	}
	keeper := w.join("keeper")
	for _, cred := range []string{"u:p", "v:q", "root:root"} {
		keeper.do(auth("digest", cred))
	}
	if !w.clear(keeper, w.base) {
		w.t.Fatalf("%s could not be removed", w.base)
	}
	keeper.close()
}

// clear removes a node and what is below it.
func (w *world) clear(c *client, path string) bool {
	r := c.do(list(path, false))
	if r.err == 0 && !r.gone {
		d := &reader{b: r.body}
		for range d.count() {
			w.clear(c, path+"/"+d.str())
		}
	}
	r = c.do(remove(path, -1))
	return !r.gone && (r.err == 0 || r.err == noNode)
}

const noNode = -101
