package zkconn

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"
)

// An external connection (users call it a tapped one: zksync.Tap) belongs to
// the caller. Its dialer is not ours, so there is no wire that sees its frames.
// What the wire gives is obtained in other ways, each of which costs more:
//
//   - The lease clock counts from before a request was handed over, and requests of our own keep it going.
//   - The session id is compared around every request and at every look at the connection,
//     because the client library opens a new session by itself, and runs in it what was queued.
//   - The event of each watch comes through a channel of its own, so the order of events is lost. Whoever
//     concludes something from an event must read again (Ordered). So a grant after a wait costs a listing.
//   - The session does not end with us, so nothing that was made in it disappears by itself:
//     the reaper goes on after the end of epochs and of the client (externalreap.go).

// External starts a client on a connection that the caller made and will close.
func External(cfg Config, conn *zk.Conn) *Client {
	c := newClient(cfg)
	c.external = conn
	if c.abandon = closedChannel(conn); c.abandon == nil {
		// This client library does not show us its end. Then it is better to
		// leave an orphan in its session than a goroutine that never ends.
		abandon, finish := context.WithCancel(context.Background())
		c.abandon, c.finish = abandon.Done(), finish
	}
	c.runs.Go(c.attend)
	return c
}

// attend makes an epoch of each session that the external connection has.
func (c *Client) attend() {
	t := time.NewTicker(c.poll())
	defer t.Stop()
	for n := int64(1); c.running.Err() == nil; {
		if e := c.recognise(n); e != nil {
			n++
			e.attend(t)
			<-e.told // see run
			continue
		}
		select {
		case <-t.C:
		case <-c.running.Done():
			return
		}
	}
}

// poll is how often the state of an external connection is looked at.
func (c *Client) poll() time.Duration {
	return min(max(c.cfg.Timeout/20, 5*time.Millisecond), 250*time.Millisecond)
}

// recognise returns an epoch if the connection has a session that answers, and nil if not.
func (c *Client) recognise(n int64) *Epoch {
	conn := c.external
	if conn.State() != zk.StateHasSession {
		return nil
	}
	// The client library stores the negotiated timeout before it sets this
	// state, which State reads atomically. So the timeout may be read here.
	timeout := c.cfg.Timeout
	if granted, ok := negotiated(conn); ok && (granted < timeout || timeout == 0) {
		timeout = granted
	}
	e := c.newEpoch(n)
	e.conn = conn
	e.id.Store(conn.SessionID())
	e.timeout.Store(int64(timeout))
	sent := time.Now()
	for range 2 { // one answer proves nothing, the second proves the first: see leaseClock
		if !e.ask() || conn.SessionID() != e.ID() {
			return nil
		}
	}
	c.mu.Lock()
	c.epoch = e
	c.mu.Unlock()
	e.clock.startExternal(sent, timeout, c.cfg.LeaseFraction)
	e.heartbeat()
	e.linkExternal()
	return e
}

// negotiated reads the timeout that the servers granted. The client library keeps it in a private field.
func negotiated(conn *zk.Conn) (time.Duration, bool) {
	f := reflect.ValueOf(conn).Elem().FieldByName("sessionTimeoutMs")
	if !f.IsValid() || !f.CanInt() || f.Int() <= 0 {
		return 0, false
	}
	return time.Duration(f.Int()) * time.Millisecond, true
}

// ask sends one cheap request, which the leader must answer. It reports whether
// the answer came within a third of the session timeout, and before Close began.
func (e *Epoch) ask() bool {
	ctx, cancel := context.WithTimeout(e.client.running, max(e.Timeout()/3, time.Millisecond))
	defer cancel()
	_, err := start(e, syncRequest(Heartbeat)).Wait(ctx, e)
	return err == nil
}

// startExternal hands a request to the client library, in a
// goroutine, since the library does not let the caller give it up.
func startExternal[T any](e *Epoch, op int32, f func(*zk.Conn) (T, error)) *Call[T] {
	if e.abandoned() {
		return failed[T](ErrNotSent)
	}
	c := &Call[T]{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		sent := time.Now()
		v, err := f(e.conn)
		c.val, c.err = v, classify(err)
		switch {
		case e.conn.SessionID() != e.ID():
			e.replaced()
		case proves(c.err):
			e.answered(sent, led(op, 0)) // sent may be long before the library sent it: then this proves less
		}
	}()
	return c
}

// attend looks at the connection again and again, until the epoch is over or the client is closed.
func (e *Epoch) attend(t *time.Ticker) {
	for {
		select {
		case <-e.over:
			return
		case <-e.client.running.Done():
			e.lose(ErrClosed)
			return
		case <-t.C:
		}
		if e.conn.SessionID() != e.ID() {
			e.replaced()
			return
		}
		switch up := e.conn.State() == zk.StateHasSession; {
		case up && !e.Linked():
			e.linkExternal()
			// The client library's handshake proves nothing to us. No heartbeat was sent since
			// the connection was lost, and the next one may be due only when the lease has ended.
			e.beatExternal()
		case !up && e.Linked():
			e.disconnected(e.current(), errDetached, true)
		}
	}
}

// linkExternal notes that there is a connection.
func (e *Epoch) linkExternal() {
	_ = e.link(&wire{addr: e.conn.Server()}, func() {}) // unless the epoch is over
}

// beatExternal sends a heartbeat. Finish waits for its answer, because the owner
// may close the connection as soon as our Close has returned: see abandoned.
func (e *Epoch) beatExternal() {
	e.client.linger(func() { <-start(e, syncRequest(Heartbeat)).Done() })
}

// replaced ends the epoch. It is called by whoever finds that the connection has another session now. It
// does not wait for the next look of attend: until then requests would be answered in the next session.
func (e *Epoch) replaced() {
	e.client.mu.Lock()
	current := e.client.epoch == e // else it is only being recognised, or over
	e.client.mu.Unlock()
	if !current {
		return
	}
	e.nothingRemains()
	e.lose(errReplaced)
}

var (
	errDetached = errors.New("the external connection has none")
	errReplaced = fmt.Errorf("%w: the external connection has another session now", ErrOver)
)

// abandoned reports whether the owner of an external connection has closed it. If the
// client library takes a request after that, and cannot write it, the goroutine of the
// request can hang for ever: the library reports the failure three times, and there is room
// for two. We can do nothing about a request that is on its way when the owner calls Close.
func (e *Epoch) abandoned() bool { return closed(e.client.abandon) }

// Ordered reports whether events of different watches come in the order of the server's history, and
// whether a create is sure to run in this epoch's session. It is false for an external connection.
func (e *Epoch) Ordered() bool { return e.client.external == nil }

// watchExternal sets one watch through the client library, in the
// background. If the node does not exist, an event tells that.
func (e *Epoch) watchExternal(key watchKey) {
	// The goroutine runs until the library has an answer, so
	// it must not hold up Stop. A failure is told as an event.
	e.client.linger(func() {
		switch _, err := e.armExternal(key, nil); {
		case errors.Is(err, zk.ErrNoNode):
			e.hub.fire(key.path, firing{key.kind, Deleted})
		case err != nil:
			e.disconnectedLater(key)
		}
	})
}

// armedRead is what the read that has set a watch told of the node.
type armedRead struct {
	Content
	Listing
}

// armExternal sets one watch through the client library and has
// its event told. If the node is not there, only an absence watch is set, and the error is zk.ErrNoNode, too. n, if
// not nil, is what was subscribed to: it is noted that the watch is set, before its event can come.
func (e *Epoch) armExternal(key watchKey, n *watchedNode) (a armedRead, err error) {
	if e.abandoned() {
		return a, ErrNotSent
	}
	conn := e.conn
	var ch <-chan zk.Event
	exists := func() (err error) {
		var there bool
		if there, a.Content.Stat, ch, err = conn.ExistsW(key.path); err == nil && !there {
			err = zk.ErrNoNode
		}
		return err
	}
	switch key.kind {
	case childWatch:
		a.Names, a.Listing.Stat, ch, err = conn.ChildrenW(key.path)
	case absenceWatch:
		err = exists()
	default:
		a.Data, a.Content.Stat, ch, err = conn.GetW(key.path)
		if errors.Is(err, zk.ErrNoAuth) { // exists needs no permission
			err = exists()
			a.Content = Content{}
		}
	}
	if conn.SessionID() != e.ID() {
		e.replaced()
	}
	if err != nil && !(errors.Is(err, zk.ErrNoNode) && key.kind == absenceWatch) {
		return a, classify(err)
	}
	if n != nil {
		e.hub.armed(n)
	}
	e.Go(func() {
		select {
		case ev := <-ch:
			e.hub.fire(key.path, firing{key.kind, eventOf(ev.Type)})
		case <-e.client.running.Done():
		}
	})
	return a, err
}

func eventOf(t zk.EventType) Event {
	switch t {
	case zk.EventNodeDeleted:
		return Deleted
	case zk.EventNodeCreated:
		return Created
	case zk.EventNodeDataChanged, zk.EventNodeChildrenChanged:
		return Changed
	}
	return Disconnected // the session ended, or the connection was closed
}

// disconnectedLater tells Disconnected for a watch that could not be
// set, after attend has had time to see whether the connection is lost.
func (e *Epoch) disconnectedLater(key watchKey) {
	_ = e.Pause(e.client.running, e.client.poll())
	e.hub.fire(key.path, firing{key.kind, Disconnected})
}
