package zkconn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// network is what there is besides the servers: a name server, and hosts of which some serve.
type network struct {
	srv *zktest.Server

	mu      sync.Mutex
	hosts   map[string][]string // addresses by name
	slow    time.Duration       // how long each look-up takes
	hung    string              // the name whose look-up never ends
	deaf    map[string]bool     // addresses that take connections, and are silent
	dead    map[string]bool     // addresses that refuse
	lookUps map[string]int
	dialled []string
}

func newNetwork(t *testing.T, hosts map[string][]string) *network {
	return &network{srv: zktest.Run(t), hosts: hosts, deaf: map[string]bool{}, dead: map[string]bool{}, lookUps: map[string]int{}}
}

// become changes the network.
func (n *network) become(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *network) resolve(ctx context.Context, host string) ([]string, error) {
	n.mu.Lock()
	n.lookUps[host]++
	slow, hung, found := n.slow, n.hung == host, n.hosts[host]
	n.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, address)
	deaf, dead := n.deaf[address], n.dead[address]
	n.mu.Unlock()
	switch {
	case deaf:
		theirs, ours := net.Pipe()
		go func() { _, _ = ours.Read(make([]byte, 1024)) }()
		return theirs, nil
	case dead:
		return nil, errors.New("refused")
	}
	return n.srv.DialContext(ctx, network, address)
}

func (n *network) config(servers ...string) zkconn.Config {
	return zkconn.Config{Servers: servers, Timeout: 10 * time.Second, Dial: n.dial, Resolve: n.resolve}
}

// connect opens a client, and returns how long it took to get a session.
func (n *network) connect(t *testing.T, cfg zkconn.Config) (c *zkconn.Client, e *zkconn.Epoch, took time.Duration) {
	t.Helper()
	began := time.Now()
	c = zkconn.Open(cfg)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	e, err := c.Epoch(ctx)
	require.NoError(t, err, "%v", c.LastError())
	return c, e, time.Since(began)
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func pods(n int) (addresses []string) {
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d", i+1))
	}
	return addresses
}

func TestEveryAddressOfEveryNameIsTriedOnceInARound(t *testing.T) {
	firsts := map[string]bool{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, map[string][]string{"zk-a": pods(3), "zk-b": {"10.0.1.1", "10.0.1.1", "fd00::1"}})
			all := []string{"10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181", "10.0.1.1:2182", "[fd00::1]:2182"}
			for i, a := range all {
				n.deaf[a], n.dead[a] = i%2 == 0, i%2 == 1
			}
			n.deaf["[fd00::1]:2182"] = false
			n.connect(t, n.config("zk-a:2181", "zk-b:2182"))
			synctest.Wait()
			require.Subset(t, all, n.dialled)
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(n.dialled))), len(n.dialled), "one twice: %v", n.dialled)
			firsts[n.dialled[0]] = true
			require.Equal(t, map[string]int{"zk-a": 1, "zk-b": 1}, n.lookUps)
		})
	}
	require.Len(t, firsts, 5, "the order is random")
}

func TestNamesAreLookedUpAgainInEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk": pods(2)})
		n.deaf["10.0.0.1:2181"], n.deaf["10.0.0.2:2181"] = true, true
		time.AfterFunc(time.Second, func() { n.become(func() { n.hosts["zk"] = []string{"10.0.0.8", "10.0.0.9"} }) })
		_, e, took := n.connect(t, n.config("zk:2181"))
		synctest.Wait()
		require.Less(t, took, 5*time.Second+100*time.Millisecond, "two attempts of a quarter of the timeout")
		require.Contains(t, []string{"10.0.0.8:2181", "10.0.0.9:2181"}, n.dialled[2])
		require.Equal(t, 2, n.lookUps["zk"])
		n.become(func() { n.hosts["zk"] = []string{"10.0.0.10"} })
		n.srv.Disconnect(e.ID())
		_, _, err := e.Exists(t.Context(), "/")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"10.0.0.10:2181"}, n.dialled[3:], "a round begins when a connection was lost")
		require.Equal(t, 3, n.lookUps["zk"])
	})
}

func TestTheServerThatWasJustLostIsTriedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk": pods(3)})
		_, e, _ := n.connect(t, n.config("zk:2181"))
		for range 30 {
			n.srv.Disconnect(e.ID())
			_, _, err := e.Exists(t.Context(), "/")
			require.NoError(t, err)
			synctest.Wait()
			last := len(n.dialled) - 1
			require.NotEqual(t, n.dialled[last-1], n.dialled[last])
		}
	})
}

func TestASlowNameServerDelaysAttemptsAndFailsNone(t *testing.T) {
	for _, slow := range []time.Duration{2 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, map[string][]string{"zk1": pods(1), "zk2": pods(1), "zk3": pods(1)})
			n.slow = slow
			c := zkconn.Open(n.config("zk1:2181", "zk2:2181", "zk3:2181"))
			t.Cleanup(c.Close)
			time.Sleep(slow - time.Second/2)
			require.EqualError(t, c.LastError(), fmt.Sprintf("looking up zk1, zk2, zk3 takes %v: does the name server answer?", slow-time.Second/2))
			time.Sleep(time.Second / 2)
			synctest.Wait()
			require.Equal(t, zkconn.Connected, c.State())
			require.Equal(t, map[string]int{"zk1": 1, "zk2": 1, "zk3": 1}, n.lookUps)
		})
	}
}

// A look-up is as patient as an attempt; then servers are dialled whose addresses are known.
func TestALookUpThatHangsDoesNotHoldUpOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk1": pods(1), "zk2": {"10.0.0.2"}})
		n.hung = "zk1"
		_, e, took := n.connect(t, n.config("zk1:2181", "zk2:2181"))
		require.Equal(t, 2500*time.Millisecond, took, "a quarter of the timeout")
		n.become(func() { n.hung = "zk2" }) // which is known
		n.srv.Disconnect(e.ID())
		lost := time.Now()
		_, _, err := e.Exists(t.Context(), "/")
		require.NoError(t, err)
		require.Equal(t, 2500*time.Millisecond, time.Since(lost))
		synctest.Wait()
		require.Equal(t, map[string]int{"zk1": 1, "zk2": 2}, n.lookUps, "a look-up that runs is not begun again")
	})
}

func TestAServerOfWhichTheNameServerForgotIsStillReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk": pods(1)})
		_, e, took := n.connect(t, n.config("zk:2181"))
		require.Zero(t, took)
		n.become(func() { delete(n.hosts, "zk") })
		n.srv.Disconnect(e.ID())
		_, _, err := e.Exists(t.Context(), "/")
		require.NoError(t, err)
		require.NoError(t, e.Cause())
	})
}

func TestANameThatIsUnknownIsSaidAtOnceAndTriedAgainWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		var log logged
		cfg := n.config("zk:2181")
		cfg.Log = logs.New(slog.New(slog.NewTextHandler(&log, nil)))
		c := zkconn.Open(cfg)
		t.Cleanup(c.Close)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualError(t, c.LastError(), "the last attempt failed: zk:2181: lookup zk: no such host: is the name right?")
		var dns *net.DNSError
		require.ErrorAs(t, c.LastError(), &dns)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `level=WARN msg="cannot connect" server=zk:2181 error="lookup zk: no such host: is the name right?"`)
		require.Less(t, n.lookUps["zk"], 60*30)
		require.Greater(t, n.lookUps["zk"], 60)
	})
}

func TestOneAddressOfSeveralThatFailsIsNoWarning(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, map[string][]string{"zk": pods(3)})
			n.dead["10.0.0.1:2181"], n.dead["10.0.0.2:2181"] = true, true
			var log logged
			cfg := n.config("zk:2181")
			cfg.Log = logs.New(slog.New(slog.NewTextHandler(&log, nil)))
			n.connect(t, cfg)
			require.Empty(t, log.String())
			n.become(func() { n.dead["10.0.0.3:2181"] = true })
			c := zkconn.Open(cfg)
			t.Cleanup(c.Close)
			time.Sleep(time.Second)
			require.Regexp(t, `level=WARN msg="cannot connect" server="zk:2181 \(10\.0\.0\.\d\)" error=refused\n$`, log.String())
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		})
	}
}

func TestAddressesAreNotLookedUpAndACertificateIsForTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk": {"10.0.0.7"}})
		var names []string
		cfg := n.config("10.0.0.1:2181", "[fd00::1]:2181", "zk:2181")
		cfg.Secure = func(_ context.Context, raw net.Conn, host string) (net.Conn, error) {
			names = append(names, host)
			if len(names) < 3 {
				return nil, errors.New("no")
			}
			return raw, nil
		}
		n.connect(t, cfg)
		synctest.Wait()
		require.ElementsMatch(t, []string{"10.0.0.1", "fd00::1", "zk"}, names)
		require.Equal(t, map[string]int{"zk": 1}, n.lookUps)
	})
}

func TestCloseDoesNotWaitForALookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		n.hung = "zk"
		c := zkconn.Open(n.config("zk:2181"))
		time.Sleep(time.Second)
		closing := time.Now()
		c.Close()
		require.Less(t, time.Since(closing), 100*time.Millisecond)
	})
}

func TestCloseBeforeTheFirstLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk": {"10.0.0.1"}})
		began := time.Now()
		for range 100 { // in most of them Close comes before the client library dials
			zkconn.Open(n.config("zk:2181")).Close()
		}
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestConnDoesNotWaitForALookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string][]string{"zk": pods(1)})
		_, e, _ := n.connect(t, n.config("zk:2181"))
		n.become(func() { n.hung = "zk" })
		n.srv.Disconnect(e.ID())
		synctest.Wait()
		began := time.Now()
		require.NotNil(t, e.Conn())
		require.Zero(t, time.Since(began))
	})
}

// The limit of an attempt grows for servers that are slow, and not for those that are down.
func TestADarkServerCostsLittleAfterALongTimeWithoutServers(t *testing.T) {
	for range 10 { // the order is random
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, nil)
			all := []string{"10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181"}
			for _, a := range all {
				n.dead[a] = true
			}
			c := zkconn.Open(n.config(all...))
			t.Cleanup(c.Close)
			time.Sleep(time.Minute)
			n.become(func() {
				clear(n.dead)
				n.deaf[all[0]] = true
			})
			back := time.Now()
			_, err := c.Epoch(t.Context())
			require.NoError(t, err)
			require.Less(t, time.Since(back), 2700*time.Millisecond, "a sixth of the timeout, and two pauses")
		})
	}
}
