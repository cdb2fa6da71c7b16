package zkconn

// State is what a client knows of its session.
type State int

// The states of a client's session. When a connection falls silent, one of two
// things happens first: the read deadline of the client library ends the connection
// (Suspended), or the lease clock ends the session (Lost, right after Connected).
const (
	Connecting State = iota
	Connected
	Suspended // disconnected; the session may be alive
	Lost      // the session ended or can no longer be proved alive
	Closed
)

// State is the state of the newest session.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// connected is called by the epoch for a new connection. For the other states the epoch calls enter.
func (c *Client) connected(e *Epoch) {
	if c.cfg.OnSession != nil {
		e.mu.Lock()
		passwd := e.passwd
		e.mu.Unlock()
		c.cfg.OnSession(e.ID(), passwd)
	}
	c.enter(e, Connected)
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

// become sets the state, which is that of the epoch entered, and tells all subscribers. mu is held.
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
	c.future = c.future.add(change)
}

// wake wakes all who wait for a change. mu is held.
func (c *Client) wake() {
	close(c.moved)
	c.moved = make(chan struct{})
}
