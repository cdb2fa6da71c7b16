package zkconn

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// Open starts a client; it does not wait for a connection.
func Open(cfg Config) *Client {
	c := newClient(cfg)
	c.Go(c.run)
	return c
}

// longestRest is about the longest pause before another session is asked for.
const longestRest = 5 * time.Second

// run opens one epoch after the other. Only an epoch that lasted ends the growth of the pauses: what ends a session
// soon may do so again, and each of them costs the servers writes.
func (c *Client) run() {
	for _, d := range c.cfg.Predecessors {
		c.closeStale(d)
	}
	var pace Pace
	var began time.Time
	for n := int64(1); ; n++ {
		if time.Since(began) >= longestRest {
			pace = Pace{Free: 2, First: 20 * time.Millisecond, Most: longestRest}
		}
		sleep(pace.Next(), c.running.Done())
		began = time.Now()
		t := c.open(n)
		select {
		case <-t.over:
			// The next epoch ends this session on the servers, which then grant to others. So it must not
			// begin before every holder has heard, even if the goroutine that calls the hooks is delayed.
			<-t.told
		case <-c.running.Done():
			t.awaitGreeting()
		}
		var at *target
		if w := t.current(); w != nil && t.Cause() == nil {
			at = &w.target
			t.shutdown(true)
		} else {
			// This is not waited for: the client library can take
			// a second to notice that its connection is gone.
			c.runs.Go(func() { t.shutdown(false) })
		}
		if c.running.Err() != nil || c.Refused() != nil { // no other epoch follows
			c.endAll(c.closing, t.Epoch, at)
			return
		}
		// The session was given up here, but the servers may still
		// have it: end it there, or others wait for its timeout.
		if dead := t.remains(); dead != nil {
			c.closeStale(*dead)
		} else {
			c.ended(t.ID())
		}
	}
}

// open starts the client library for one epoch.
func (c *Client) open(n int64) *tenure {
	t := c.newTenure(n)
	c.mu.Lock()
	c.epoch = t.Epoch
	c.mu.Unlock()
	_, t.events, _ = zk.Connect( // it fails only without servers
		c.cfg.Servers, c.cfg.Timeout,
		func(zc *zk.Conn) { t.conn = zc }, // before its loop starts
		sendLittle,
		zk.WithDialer(t.hosts.dial),
		zk.WithHostProvider(t.hosts),
		zk.WithLogger(zkLogger{c.cfg.Log}),
		zk.WithLogInfo(false),
	)
	t.Go(t.heartbeats)
	if !t.ahead() {
		t.Go(t.enter)
	}
	return t
}
