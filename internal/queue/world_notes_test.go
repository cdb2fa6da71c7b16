package queue_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// line is one thing that happened.
type line struct {
	at      time.Duration
	shown   string // at, or since the client connected again, which it does after a random pause
	client  string
	text    string
	session int64 // of a request of which the outcome is not known yet, else 0
	xid     int32
	op      zktest.Op
}

// say notes what happened to a client; mu is held.
func (w *world) say(name, format string, args ...any) *line {
	l := &line{at: time.Since(w.start), client: name, text: fmt.Sprintf(format, args...)}
	l.shown = l.at.String()
	if c := w.known(name); !c.since.IsZero() {
		l.shown = "+" + time.Since(c.since).String()
	}
	w.lines = append(w.lines, l)
	return l
}

// request notes a request that has reached the server. What it says of a listing is what the server would answer now.
func (w *world) request(r *zktest.Request) {
	beat := r.Op == zktest.Sync && r.Path == zkconn.Heartbeat
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.clients, func(c *client) bool { return c.id == r.Session })
	if i < 0 || r.Op == zktest.Ping || r.Op == zktest.Connect || r.Op == zktest.CloseSession || beat && !w.heartbeats {
		return
	}
	c := w.clients[i]
	var what string
	switch {
	case r.Op == zktest.GetChildren:
		what = "list: " + strings.Join(w.listed(c), " ")
	case r.Op == zktest.SetWatches:
		what = "watch " + w.shortAll(r.Paths)
	case r.Op == zktest.Multi:
		what = w.multi(c, r)
	case beat:
		what = "heartbeat"
	default:
		what = map[zktest.Op]string{zktest.GetData: "read"}[r.Op]
		if what == "" {
			what = r.Op.String()
		}
		what += " " + w.short(r.Path)
	}
	l := w.say(c.name, "> %s", what)
	l.session, l.xid, l.op = r.Session, r.Xid, r.Op
}

func (w *world) multi(c *client, r *zktest.Request) string {
	var parts []string
	for i, op := range r.Ops {
		if m := named.FindStringSubmatch(r.Paths[i]); op == zktest.Create && m != nil && w.uuids[m[1]] == "" {
			c.tries++
			w.uuids[m[1]] = c.name
			if c.tries > 1 {
				w.uuids[m[1]] += strconv.Itoa(c.tries)
			}
			c.own, c.ahead = m[1], nil
		}
		name := op.String()
		if op == zktest.SetData {
			name = "set"
		}
		parts = append(parts, name+" "+w.short(r.Paths[i]))
	}
	return strings.Join(parts, ", ")
}

// outcomes adds what became of the requests; mu is held.
func (w *world) outcomes() {
	log := w.srv.Log()
	for _, r := range log[w.seen:] {
		i := slices.IndexFunc(w.lines, func(l *line) bool { return l.session == r.Session && l.xid == r.Xid && l.op == r.Op })
		if i < 0 || r.Session == 0 {
			continue
		}
		l := w.lines[i]
		l.session = 0
		if r.Op == zktest.Multi && r.Created != "" {
			l.text += ": " + w.short(r.Created)
		}
		if r.Code != 0 {
			l.text += ": " + r.Code.String()
		}
		if r.Fate != "" {
			l.text += " (" + r.Fate + ")"
		}
	}
	w.seen = len(log)
	for _, l := range w.lines {
		if l.session != 0 {
			l.text += " (held)"
		}
	}
}

// listed checks that the set ahead of a client's entry only shrinks, by the numbers, which are kept when one entry takes the
// place of another. It returns the directory as it is shown.
func (w *world) listed(c *client) []string {
	names := w.srv.Children(dir)
	own := slices.IndexFunc(names, func(n string) bool { return c.own != "" && strings.Contains(n, c.own) })
	if e, ok := parse(names, own); ok && e.Ordered() {
		ahead := make(map[int32]bool)
		for i := range names {
			if o, ok := parse(names, i); ok && o.Ordered() && o.Seq < e.Seq {
				ahead[o.Seq] = true
				assert.True(w.t, c.ahead == nil || c.ahead[o.Seq], "%d has come ahead of %d", o.Seq, e.Seq)
			}
		}
		c.ahead = ahead
	}
	for i := range names {
		names[i] = w.short(names[i])
	}
	slices.Sort(names)
	return names
}

func parse(names []string, i int) (queue.Entry, bool) {
	if i < 0 {
		return queue.Entry{}, false
	}
	return queue.ParseEntry(names[i])
}

// granted notes a grant, and checks that nobody is in its way on the server: nobody can be any more then.
func (w *world) granted(c *client, t *queue.Ticket) {
	w.say(c.name, ": granted")
	self, there := w.srv.Node(t.Node)
	if !there {
		return // the one who will be told so a moment later
	}
	assert.Equal(w.t, self.Stat.Czxid, t.Entry.Czxid, "its token")
	assert.Equal(w.t, t.Epoch.ID(), self.Stat.EphemeralOwner)
	var ahead []queue.Entry
	for _, name := range w.srv.Children(dir) {
		e, ok := queue.ParseEntry(name)
		if !ok || e.UUID == t.Entry.UUID {
			continue
		}
		n, _ := w.srv.Node(dir + "/" + name)
		before := n.Stat.Czxid < self.Stat.Czxid
		if e.Ordered() && t.Entry.Ordered() {
			before = e.Seq < t.Entry.Seq
		}
		if before {
			ahead = append(ahead, e)
		}
	}
	slices.SortFunc(ahead, func(a, b queue.Entry) int { return int(a.Seq) - int(b.Seq) })
	blockers := queue.PolicyFor(t.Entry.Kind, w.capacity)(ahead, t.Entry)
	assert.Empty(w.t, blockers, "%s is granted", c.name)
}

// named is an entry, and what begins its name.
var named = regexp.MustCompile(`(?:_c_|revoke-)([0-9a-f-]{36})(-lock-|-__READ__|-__WRIT__|-permit-\d+-|-latch-|_lock-2147483647)?(-?\d*)`)

// short is a path as traces show it.
func (w *world) short(path string) string {
	path = strings.TrimPrefix(path, dir+"/")
	if path == dir {
		return "dir"
	}
	m := named.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	kind := map[string]string{"-__READ__": "-read-", "-__WRIT__": "-write-", queue.AsideEnd: "-request"}[m[2]]
	if kind == "" {
		kind = m[2]
	}
	if n, err := strconv.Atoi(m[3]); err == nil {
		kind += strconv.Itoa(n)
	}
	return w.uuids[m[1]] + kind
}

func (w *world) shortAll(paths []string) string {
	var all []string
	for _, p := range paths {
		all = append(all, w.short(p))
	}
	return strings.Join(all, " ")
}

// dial connects a client, and notes the events that it is sent.
func (w *world) dial(c *client) (net.Conn, error) {
	conn, err := w.srv.Dial("", "", 0)
	return &overheard{Conn: conn, received: &c.received, event: func(kind int32, path string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.say(c.name, "< %s %s", [...]string{"?", "created", "deleted", "changed", "children of"}[kind], w.short(path))
	}}, err
}

// overheard is a connection whose watch events somebody sees before their client does.
type overheard struct {
	net.Conn
	received *atomic.Int64
	frames   []byte
	event    func(kind int32, path string)
}

func (c *overheard) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	c.frames = append(c.frames, p[:n]...)
	for len(c.frames) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(c.frames))
		if len(c.frames) < size {
			break
		}
		const header, path = 4 + 16, 4 + 16 + 12 // xid, zxid, error; kind, state, the path's length
		if f := c.frames[:size]; size > path && int32(binary.BigEndian.Uint32(f[4:])) == -1 {
			c.event(int32(binary.BigEndian.Uint32(f[header:])), string(f[path:]))
		}
		c.frames = c.frames[size:]
	}
	return n, err
}
