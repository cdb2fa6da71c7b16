package zktest_test

// The tests in the files gozk_*_test.go are about what the go-zookeeper client promises in its documentation, and
// needs a server for: a server that it does not work with as with a real one would be of no use.

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// gozk is a client with everything that it told its callback.
type gozk struct {
	*zk.Conn
	channel <-chan zk.Event

	mu     sync.Mutex
	events []zk.Event
	conns  []net.Conn
}

// newGozk connects a client, with options of its own, to the servers of a bubble.
func newGozk(t *testing.T, dial zk.Dialer, hosts zk.HostProvider, timeout time.Duration, opts ...func(*zk.Conn)) *gozk {
	t.Helper()
	c := &gozk{}
	conn, channel, err := zk.Connect([]string{"a", "b", "c"}, timeout, func(conn *zk.Conn) {
		for _, opt := range append([]func(*zk.Conn){
			zk.WithDialer(c.keeping(dial)), zk.WithHostProvider(hosts), zk.WithLogger(quiet{}), zk.WithEventCallback(c.hear),
		}, opts...) {
			opt(conn)
		}
	})
	require.NoError(t, err)
	c.Conn, c.channel = conn, channel
	t.Cleanup(func() {
		conn.Close()
		c.closeAll()
		for range channel {
		}
	})
	return c
}

// withGozk runs f in virtual time with a server and a client that has a session.
func withGozk(t *testing.T, f func(t *testing.T, srv *zktest.Server, c *gozk), opts ...func(*zk.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c := newGozk(t, srv.Dial, &hostList{}, 30*time.Second, opts...)
		synctest.Wait()
		require.Equal(t, zk.StateHasSession, c.State())
		f(t, srv, c)
	})
}

// keeping remembers connections: the client leaves the one of an expired session open.
func (c *gozk) keeping(dial zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, timeout)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.conns = append(c.conns, conn)
		}
		return conn, err
	}
}

func (c *gozk) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *gozk) hear(e zk.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

// told returns what the callback has heard since it was asked before, once everything has settled:
// states, and what happened to nodes.
func (c *gozk) told() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for _, e := range c.events {
		if e.Type == zk.EventSession {
			words = append(words, strings.TrimPrefix(e.State.String(), "State"))
		} else {
			words = append(words, fmt.Sprintf("%s %s", strings.TrimPrefix(e.Type.String(), "Event"), e.Path))
		}
	}
	c.events = nil
	return strings.Join(words, ", ")
}

// hostList is a list of hosts that are not looked up. It starts over with a pause, as the client's own does.
type hostList struct {
	mu      sync.Mutex
	hosts   []string
	next    int
	tried   int // since a connection succeeded
	success int
}

func (h *hostList) Init(hosts []string) error {
	h.hosts = []string{"a:2181", "b:2181", "c:2181"}[:len(hosts)]
	return nil
}

func (h *hostList) Len() int { return len(h.hosts) }

func (h *hostList) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.tried > 0 && h.tried%len(h.hosts) == 0
	h.tried++
	h.next++
	return h.hosts[(h.next-1)%len(h.hosts)], again
}

func (h *hostList) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
	h.success++
}

// take returns what comes through a channel, which must be there.
func take(t *testing.T, ch <-chan zk.Event) zk.Event {
	t.Helper()
	synctest.Wait()
	select {
	case e, ok := <-ch:
		require.True(t, ok, "the channel is closed")
		return e
	default:
		t.Fatal("there is no event")
		return zk.Event{}
	}
}

// closed reports whether a channel has nothing more and is closed.
func closed(ch <-chan zk.Event) bool {
	synctest.Wait()
	select {
	case _, ok := <-ch:
		return !ok
	default:
		return false
	}
}

// awaitSession lets time pass until the client has a session.
func awaitSession(c *gozk) {
	for synctest.Wait(); c.State() != zk.StateHasSession; synctest.Wait() {
		<-time.After(time.Second)
	}
}
