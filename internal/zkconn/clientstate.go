package zkconn

// State is what a client knows of its session.
type State int

// The states of a client's session. When a connection falls silent, the client library's read deadline ends it (Suspended), or the
// lease clock ends the session before (Lost, right after Connected): whichever comes first.
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

// connected is told by the epoch, as the other states are to enter.
func (c *Client) connected(e *Epoch) {
	if c.cfg.OnSession != nil {
		e.mu.Lock()
		passwd := e.passwd
		e.mu.Unlock()
		c.cfg.OnSession(e.ID(), passwd)
	}
	c.enter(e, Connected)
}

// enter moves to a state that epoch e found itself in. Whoever speaks for an older
// epoch than the last that spoke is late and ignored. A lost epoch stays lost, and
// Closed is final.
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
		c.become(Lost) // the old epoch's own word is still on its way
	}
	c.entered = e
	c.become(s)
}

// become sets the state, which is that of the epoch entered, and tells everybody. mu is held.
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

// wake releases everybody who waits for a change. mu is held.
func (c *Client) wake() {
	close(c.moved)
	c.moved = make(chan struct{})
}
