package zktest

import (
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Connect returns a go-zookeeper client with a session, in memory; Cleanup closes it. It fails t without a
// session within timeout, at least 10 s.
func (s *Server) Connect(t TB, timeout time.Duration) *zk.Conn {
	t.Helper()
	s.sameBubble(t)
	if s.isClosed() {
		t.Fatal(errClosed)
	}
	o := newOwner(s)
	open := func(network, _ string) (net.Conn, error) { return s.dial(network, o.joined) }
	return connect(t, timeout, o, &dialer{open: open, hosts: []string{"zktest"}})
}

func connect(t TB, timeout time.Duration, o *owner, d *dialer) *zk.Conn {
	t.Helper()
	if timeout <= 0 {
		t.Fatalf("zktest: Connect with a session timeout of %v: want 10*time.Second, for instance", timeout)
	}
	ready := make(chan struct{})
	var once sync.Once
	conn, events, err := zk.Connect(d.hosts, timeout,
		zk.WithDialer(d.dial), zk.WithHostProvider(d), zk.WithLogger(discard{}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				once.Do(func() { close(ready) })
			}
		}))
	if err != nil {
		t.Fatalf("zktest: connect: %v", err)
	}
	t.Cleanup(func() {
		o.close(false)
		conn.Close()
		d.close()
		for range events { // closed when the client's loop has ended
		}
	})
	patience := time.NewTimer(max(timeout, 10*time.Second))
	defer patience.Stop()
	select {
	case <-ready:
	case <-patience.C:
		t.Fatalf("zktest: no session within %v: is the server closed, stopped or frozen, does it refuse, or is Connect intercepted?", max(timeout, 10*time.Second))
	}
	return conn
}

// dialer closes the client's previous connection before it opens the next: the client
// forgets to when its session has expired.
type dialer struct {
	open  func(network, addr string) (net.Conn, error)
	hosts []string

	mu     sync.Mutex
	next   int // of the hosts, around
	last   net.Conn
	tried  int // since the last session
	now    time.Time
	rush   int // attempts at this very instant
	closed bool
}

func (d *dialer) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil {
		_ = d.last.Close()
		d.last = nil
	}
	if d.closed {
		return nil, net.ErrClosed
	}
	c, err := d.open(network, addr)
	if err != nil {
		return nil, err
	}
	d.last = c
	return c, nil
}

// close ends a handshake that hangs in a partition; the client would wait for it.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.last != nil {
		_ = d.last.Close()
	}
}

// maxRush is how many attempts there may be at one instant.
const maxRush = 10

// Init, Len, Next and Connected make the dialer a host list that needs no DNS and is not shuffled. The
// list has "ended" when one attempt at each has not led to a session: that makes the client pause
// for a second, fail what waits and notice that it was closed.
//
// It has so, too, after ten attempts at one instant, as there are in a bubble while a rule ends every connection: else
// time would stand still.
func (d *dialer) Init([]string) error { return nil }
func (d *dialer) Len() int            { return len(d.hosts) }

func (d *dialer) Next() (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.tried > 0 && d.tried%len(d.hosts) == 0
	d.tried++
	if now := time.Now(); !now.Equal(d.now) {
		d.now, d.rush = now, 0
	}
	if d.rush++; d.rush%maxRush == 0 {
		again = true
	}
	host := d.hosts[d.next%len(d.hosts)]
	d.next++
	return host, again
}

func (d *dialer) Connected() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried = 0
}

type discard struct{}

func (discard) Printf(string, ...any) {}
