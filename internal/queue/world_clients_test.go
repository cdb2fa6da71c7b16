package queue_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// client is one session at a time.
type client struct {
	name string
	conn *zkconn.Client

	received atomic.Int64 // bytes

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

func (c *client) session() int64 { return c.conn.Current().ID() }

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

// seal has all clients make sealed entries, once the server knows their identities.
func (w *world) seal() {
	queue.Crowd = 0
	w.t.Cleanup(func() { queue.Crowd = 3 })
}

// crowd does that at once for one client.
func (w *world) crowd(name string) {
	w.seal()
	_, _, _ = w.client(name).conn.Current().Identity()
	time.Sleep(3 * latency)
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
		old.End(queue.Replaced, 0)
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

func number(t tb, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
