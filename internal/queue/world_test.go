package queue_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
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

// client is one session at a time.
type client struct {
	name string
	conn *zkconn.Client

	// Guarded by the world's mutex.
	id     int64
	since  time.Time // when it connected again in this block
	tries  int
	asks   bool          // and waits
	ticket *queue.Ticket // that it holds
	giveUp context.CancelFunc
	ahead  map[int32]bool // the numbers ahead of its newest entry when it was listed last
	own    string
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
	return w.open(name, false)
}

// known is a client that has been opened; mu is held.
func (w *world) known(name string) *client {
	i := slices.IndexFunc(w.clients, func(c *client) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return w.clients[i]
}

func (w *world) open(name string, external bool) *client {
	c := &client{name: name, giveUp: func() {}}
	w.mu.Lock()
	w.clients = append(w.clients, c)
	w.mu.Unlock()
	cfg := zkconn.Config{
		Servers: []string{"10.0.0.1:2181"}, Timeout: timeout,
		Dial:      func(context.Context, string, string) (net.Conn, error) { return w.dial(c) },
		OnSession: func(id int64, _ []byte) { w.connected(c, id) },
	}
	if !external {
		c.conn = zkconn.Open(cfg)
	} else {
		conn, _, err := zk.Connect(cfg.Servers, timeout, zk.WithLogInfo(false), zk.WithDialer(
			func(string, string, time.Duration) (net.Conn, error) { return w.dial(c) }))
		require.NoError(w.t, err)
		w.t.Cleanup(conn.Close)
		for conn.SessionID() == 0 {
			time.Sleep(latency)
		}
		w.connected(c, conn.SessionID())
		cfg.OnSession = nil
		c.conn = zkconn.External(cfg, conn)
	}
	_, err := c.conn.Epoch(context.Background())
	require.NoError(w.t, err)
	return c
}

func (c *client) session() int64 { return c.conn.Current().ID() }

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

// queue is that of a client who asks for something.
func (w *world) queue(c *client, kind, more string) *queue.Queue {
	q := queue.Queue{Client: c.conn, Dir: dir, Kind: queue.Kind(kind), ACL: zk.WorldACL(zk.PermAll)}
	switch {
	case more == "noread":
		q.ACL = zk.WorldACL(zk.PermAll &^ zk.PermRead)
	case kind == string(queue.KindPermit):
		q.Weight, q.Policy = int64(number(w.t, more)), queue.WeightedPolicy(w.capacity)
	}
	return queue.New(q)
}

func (w *world) enter(name, kind, more string, try bool) {
	c := w.client(name)
	q := w.queue(c, kind, more)
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	c.giveUp, c.asks = cancel, true
	w.mu.Unlock()
	go func() {
		var t *queue.Ticket
		var err error
		lost := func(t *queue.Ticket) { w.lost(c, t) }
		if try {
			t, err = q.Try(ctx, lost)
		} else {
			t, err = q.Obtain(ctx, lost)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if c.asks = false; err != nil {
			w.say(name, ": %v", err)
			return
		}
		w.granted(c, t)
		if !t.Over() {
			c.ticket = t
		}
	}()
}

func (w *world) lost(c *client, t *queue.Ticket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	why := "its node was deleted"
	if cause := t.Epoch.Cause(); cause != nil {
		why = "its session is over"
	}
	w.say(c.name, ": lost, %s", why)
	if c.ticket == t {
		c.ticket = nil
	}
}

func (w *world) leave(name string) {
	c := w.client(name)
	w.mu.Lock()
	t := c.ticket
	c.ticket = nil
	w.mu.Unlock()
	c.giveUp()
	if t == nil {
		return
	}
	go func() {
		t.Leave(time.Second)
		w.mu.Lock()
		w.say(name, ": left")
		w.mu.Unlock()
	}()
}

func (w *world) downgrade(name string) {
	c := w.client(name)
	old := c.ticket
	next := w.queue(c, string(queue.KindRead), "").Successor(old)
	go func() {
		old.SetReplacing(true)
		_, err := old.ReplaceBy(context.Background(), next, nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.say(name, ": %v", err)
			return
		}
		old.Forget()
		c.ticket = next
		w.say(name, ": reads now")
	}()
}

// foreign makes an entry of another library. Its client does nothing but keep the session.
func (w *world) foreign(name, kind string) {
	c := w.client(name)
	uuid := fmt.Sprintf("%08x-0000-4000-8000-000000000000", len(w.uuids))
	w.uuids[uuid] = name
	mark := map[string]string{"lock": "-lock-", "write": "-__WRIT__", "read": "-__READ__", "unknown": "-latch-"}[kind]
	w.srv.Create(dir+"/_c_"+uuid+mark, nil, zk.FlagEphemeral|zk.FlagSequence, c.session())
}

// node is the path of the newest node of a client, or of the one with this name.
func (w *world) node(name string) string {
	path := w.newest(name)
	require.NotEmpty(w.t, path, "%s has no node", name)
	return path
}

func (w *world) newest(name string) (path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, child := range w.srv.Children(dir) {
		if short := w.short(child); strings.HasPrefix(short, name+"-") || path == "" && strings.HasPrefix(short, name) {
			path = dir + "/" + child
		}
	}
	return path
}

func (w *world) rule(op, name, verdict string) {
	r := zktest.On(map[string]zktest.Op{
		"create": zktest.Create, "list": zktest.GetChildren, "delete": zktest.Delete, "watch": zktest.SetWatches,
		"exists": zktest.Exists, "read": zktest.GetData, "deleted": zktest.EventDeleted,
	}[op], "**").Of(w.client(name).session()).Nth(1)
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
var named = regexp.MustCompile(`_c_([0-9a-f-]{36})(-lock-|-__READ__|-__WRIT__|-permit-\d+-|-latch-)?(-?\d*)`)

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
	kind := map[string]string{"-__READ__": "-read-", "-__WRIT__": "-write-"}[m[2]]
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
	return &tap{Conn: conn, event: func(kind int32, path string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.say(c.name, "< %s %s", [...]string{"?", "created", "deleted", "changed", "children of"}[kind], w.short(path))
	}}, err
}

// tap is a connection whose watch events somebody sees before their client does.
type tap struct {
	net.Conn
	frames []byte
	event  func(kind int32, path string)
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
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

func number(t tb, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
