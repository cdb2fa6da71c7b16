package zkconn

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/logs"
)

// Client keeps one session alive at a time, and opens the next one when it ends.
type Client struct {
	shared
	names *resolver

	mu      sync.Mutex
	state   State
	epoch   *Epoch        // the newest
	entered *Epoch        // the epoch whose state is in state
	moved   chan struct{} // closed and replaced when the state changes, stale grows, or the servers refuse us
	refused error         // why the servers refuse us for good; nil if they do not
	future  *history      // the list that the next change of state is added to

	stale  []*staleSession // sessions of the past that are not yet ended, the oldest first
	ending bool            // endStale runs
}

// staleSession is a session of the past that the servers may still have.
type staleSession struct {
	Credentials
	due   time.Time // when the next attempt to end it is due
	pace  Pace
	tries int // how many attempts there were
}

func newClient(cfg Config) *Client {
	if cfg.Log == nil {
		cfg.Log = logs.New(nil)
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
		if cfg.Resolve == nil {
			cfg.Resolve = net.DefaultResolver.LookupHost
		}
	}
	c := &Client{moved: make(chan struct{}), future: newHistory()}
	c.cfg = cfg
	c.dials.outages.log, c.dials.outages.why = cfg.Log, c.dials.attempts
	c.identity.draw()
	c.running, c.halt = context.WithCancel(context.Background())
	c.closing, c.giveUp = context.WithCancel(context.Background())
	c.names = newResolver(&c.shared)
	return c
}

// State is the state of the newest session.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Current is the newest epoch that had a session, connected or not; nil if none had.
func (c *Client) Current() *Epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entered
}

// Refused is why the servers refuse this client for good; nil if they do not.
func (c *Client) Refused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Subscribe begins to follow state changes, from the next one on.
// If the client is closed already, the first change is to Closed.
func (c *Client) Subscribe() *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Subscription{From: c.state, at: c.future}
}

// Epoch returns the newest epoch as soon as it has a connection. It blocks
// until then, or until ctx ends, or the client is closed or refused for good.
func (c *Client) Epoch(ctx context.Context) (*Epoch, error) {
	for {
		c.mu.Lock()
		e, moved, state, refused := c.epoch, c.moved, c.state, c.refused
		c.mu.Unlock()
		switch {
		case refused != nil:
			return nil, refused
		case state == Closed:
			return nil, ErrClosed
		case state == Connected && e != nil && e.Linked() && e.Cause() == nil && e.ahead():
			return e, nil // in all other cases a change is on its way, which closes moved
		}
		select {
		case <-moved:
		case <-ctx.Done():
			if state != Connected {
				errs.Failed(ctx, 0, c.LastError())
			}
			return nil, ctx.Err()
		}
	}
}

// WithdrawIdentity is [Epoch.WithdrawIdentity] for the newest session, if there is one.
func (c *Client) WithdrawIdentity() (cut bool) {
	if e := c.Current(); e != nil {
		return e.WithdrawIdentity()
	}
	c.identity.withdraw()
	return false
}

// KeepIdentityOut is [Epoch.KeepIdentityOut].
func (c *Client) KeepIdentityOut(acl []zk.ACL) {
	if takesIdentity(acl) {
		c.WithdrawIdentity()
	}
}

// enter makes s, in which epoch e found itself, the state of the client. A call for an epoch that is older
// than the newest in a call so far is late, and is ignored. A lost epoch stays lost, and Closed is final.
func (c *Client) enter(e *Epoch, s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := c.entered == e
	if c.state == Closed || same && c.state == s || c.entered != nil && e.number < c.entered.number {
		return
	}
	if s != Lost && e.Cause() != nil {
		return
	}
	if !same && c.entered != nil && c.state != Lost {
		c.become(Lost) // the old epoch is lost, but its own call is still on its way, and will be ignored
	}
	c.entered = e
	c.become(s)
}

// become sets the state, of the epoch entered, and adds it to the history. mu is held.
func (c *Client) become(s State) {
	change := Change{To: s}
	if e := c.entered; e != nil {
		change.Epoch = e.number
		if s != Closed || c.state != Lost {
			change.Session = e.ID()
		}
	}
	c.state = s
	c.wake()
	if next := c.future.add(change); s != Closed { // else it stays the next change of all that subscribe from here on
		c.future = next
	}
}

// wake wakes all calls that wait for a change. mu is held.
func (c *Client) wake() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// refuse records that another attempt would be refused, too.
func (c *Client) refuse(err error) {
	c.mu.Lock()
	first := c.refused == nil
	if first {
		c.refused = err
	}
	e := c.epoch
	c.wake()
	c.mu.Unlock()
	time.AfterFunc(Closing, c.giveUp)
	c.dials.outages.stop() // an outage would say the same again
	if e != nil {
		e.lose(err)
	}
	if first { // it may be slow, so leases end first
		c.cfg.Log.Once("refused", "").Error("the session is refused for good", "error", err)
	}
}

// Closing is how long Close tries to reach a server to end the session there.
const Closing = 2 * time.Second

// Close is Stop within the usual limit.
func (c *Client) Close() { c.Stop(Closing) }

// Stop ends the session on the servers, if one can be reached within d. Before that it waits, within the same
// time, for what must be done while there is a session (Lasting). Then all calls that wait return ErrClosed.
func (c *Client) Stop(d time.Duration) {
	late := time.Now().Add(d)
	time.AfterFunc(d, c.giveUp)
	c.dials.outages.stop()
	c.dismiss(late)
	c.mu.Lock()
	if c.state != Closed {
		c.become(Closed)
		c.halt()
	}
	c.mu.Unlock()
	c.runs.Wait()
}
