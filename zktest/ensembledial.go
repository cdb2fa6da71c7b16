package zktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
)

// Servers returns addresses, "192.0.2.1:2181" and so on, that only [Ensemble.Dial] and [Ensemble.DialContext]
// know.
func (e *Ensemble) Servers() []string {
	var out []string
	for i := range e.servers {
		out = append(out, fmt.Sprintf("192.0.2.%d:2181", i+1))
	}
	return out
}

// Addrs returns [Server.Addr] of each member.
func (e *Ensemble) Addrs() []string {
	var out []string
	for _, s := range e.servers {
		out = append(out, s.Addr())
	}
	return out
}

// Dial is [Server.Dial] to the member of that address, of [Ensemble.Servers].
func (e *Ensemble) Dial(network, addr string, _ time.Duration) (net.Conn, error) {
	return e.dial(network, addr, nil)
}

func (e *Ensemble) dial(network, addr string, joined func(id int64)) (net.Conn, error) {
	for i, name := range e.Servers() {
		if name == addr {
			return e.servers[i].dial(network, joined)
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "no member of the ensemble", Addr: addr}}
}

// DialContext is [Ensemble.Dial] for [zksync.WithDialer].
func (e *Ensemble) DialContext(_ context.Context, network, addr string) (net.Conn, error) {
	return e.Dial(network, addr, 0)
}

// Session is [Server.Session] with the members in turn.
func (e *Ensemble) Session(t TB, opts ...zksync.SessionOption) *zksync.Session {
	t.Helper()
	return e.SessionAt(t, e.placed.count()%len(e.servers), opts...)
}

// SessionAt opens a session at member i, which dials the next member each time. One of [Server.Session]
// stays.
func (e *Ensemble) SessionAt(t TB, i int, opts ...zksync.SessionOption) *zksync.Session {
	t.Helper()
	e.has("SessionAt", i)
	e.servers[i].sameBubble(t)
	o := newOwner(e.servers...)
	tour := &dialer{hosts: e.Servers(), next: i}
	dial := func(_ context.Context, network, _ string) (net.Conn, error) {
		addr, _ := tour.Next()
		return e.dial(network, addr, o.joined)
	}
	return session(t, strings.Join(e.Servers(), ","), o, dial, opts)
}

// Connect is [Server.Connect] with the members in turn.
func (e *Ensemble) Connect(t TB, timeout time.Duration) *zk.Conn {
	t.Helper()
	return e.ConnectAt(t, e.placed.count()%len(e.servers), timeout)
}

// ConnectAt is [Ensemble.Connect] from member i on.
func (e *Ensemble) ConnectAt(t TB, i int, timeout time.Duration) *zk.Conn {
	t.Helper()
	e.has("ConnectAt", i)
	e.servers[i].sameBubble(t)
	o := newOwner(e.servers...)
	open := func(network, addr string) (net.Conn, error) { return e.dial(network, addr, o.joined) }
	return connect(t, timeout, o, &dialer{open: open, hosts: e.Servers(), next: i})
}
