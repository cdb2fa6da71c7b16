package zkconn

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"
)

// An external connection (users call it a tapped one: zksync.Tap) belongs to the caller: its dialer is not ours, so there is
// no wire that sees its frames. What the wire gives has to be had in other ways,
// each dearer:
//   - the lease clock counts from before a request was handed over, and requests of
//     our own keep it going;
//   - the session id is compared around every request and at every beat, because
//     the client opens a new session by itself and runs in it what was queued;
//   - events of watches come through a channel each, so their order is lost, and who
//     concludes something from it must look again (Ordered);
//   - the session does not end with us, so nothing that was made in it goes by
//     itself: the reaper works on beyond epochs, and beyond the client (externalreap.go).

// External starts a client on a connection that the caller made and will close.
func External(cfg Config, conn *zk.Conn) *Client {
	c := newClient(cfg)
	c.external = conn
	if c.abandon = closedChannel(conn); c.abandon == nil {
		// A client library that does not let us see its end: better an orphan in its
		// session than a goroutine that never ends.
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

// recognise returns an epoch if the connection has a session that answers.
func (c *Client) recognise(n int64) *Epoch {
	conn := c.external
	if conn.State() != zk.StateHasSession {
		return nil
	}
	// State, an atomic load, comes after the negotiated timeout was stored and before
	// it is read here.
	timeout := c.cfg.Timeout
	if granted, ok := negotiated(conn); ok && (granted < timeout || timeout == 0) {
		timeout = granted
	}
	e := c.newEpoch(n)
	e.conn = conn
	e.id.Store(conn.SessionID())
	e.timeout.Store(int64(timeout))
	sent := time.Now()
	for range 2 { // one answer proves nothing: see leaseClock
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

// negotiated reads what the servers granted, which the client keeps to itself.
func negotiated(conn *zk.Conn) (time.Duration, bool) {
	f := reflect.ValueOf(conn).Elem().FieldByName("sessionTimeoutMs")
	if !f.IsValid() || !f.CanInt() || f.Int() <= 0 {
		return 0, false
	}
	return time.Duration(f.Int()) * time.Millisecond, true
}

// ask makes one cheap request, which the leader must answer, and reports whether it was
// answered within a third of the session timeout, and before Close began.
func (e *Epoch) ask() bool {
	ctx, cancel := context.WithTimeout(e.client.running, max(e.Timeout()/3, time.Millisecond))
	defer cancel()
	_, err := start(e, syncRequest(Heartbeat)).Wait(ctx, e)
	return err == nil
}

// startExternal hands a request to the client library in a goroutine, since it
// cannot be given up there.
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
			e.answered(sent, led(op, 0)) // before the client sent it, if it waited in between
		}
	}()
	return c
}

// attend watches over the connection, until the epoch is over or the client closed.
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
			// The client library's handshake proves nothing to us, and no heartbeat was sent since the connection
			// went: the next one may be due only when the lease has ended.
			e.beatExternal()
		case !up && e.Linked():
			e.disconnected(e.current(), errDetached, true)
		}
	}
}

// linkExternal notes that the connection came.
func (e *Epoch) linkExternal() {
	_ = e.link(&wire{addr: e.conn.Server()}, func() {}) // unless the epoch is over
}

// beatExternal asks for a sign of life. The owner may close the connection as soon as our Close has returned: see
// abandoned. So Finish waits for the answer.
func (e *Epoch) beatExternal() {
	e.client.linger(func() { <-start(e, syncRequest(Heartbeat)).Done() })
}

// replaced is called by whoever finds that the connection's session is another one. Nobody waits for
// the next look at it: what is asked meanwhile would be answered in the next session.
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

// abandoned reports whether the owner of an external connection has closed it. A request that the
// client library takes after that can have its goroutine stand still for ever, when it cannot be
// written: it tells the request three times that it has failed, and has room for two. That of a request which is
// on its way while the owner calls Close cannot be helped from here.
func (e *Epoch) abandoned() bool { return closed(e.client.abandon) }

// Ordered reports whether events of different watches come in the order of the
// server's history, and whether a create is sure to run in this epoch's session.
// It is false for an external connection.
func (e *Epoch) Ordered() bool { return e.client.external == nil }

// watchExternal sets one watch through the client, in the background. Whether the node exists is told as an event.
func (e *Epoch) watchExternal(key watchKey) {
	// The client library does not let go of it before it has an answer. A failure is told as an event.
	e.client.linger(func() { _, _ = e.armExternal(key) })
}

// armExternal sets one watch through the client and has its event told. It returns
// the children, of a child watch.
func (e *Epoch) armExternal(key watchKey) (names []string, err error) {
	if e.abandoned() {
		e.disconnectedLater(key)
		return nil, ErrNotSent
	}
	conn := e.conn
	var ch <-chan zk.Event
	if key.children {
		names, _, ch, err = conn.ChildrenW(key.path)
	} else {
		_, _, ch, err = conn.GetW(key.path)
		if errors.Is(err, zk.ErrNoAuth) { // exists needs no permission
			var there bool
			if there, _, ch, err = conn.ExistsW(key.path); err == nil && !there {
				err = zk.ErrNoNode
			}
		}
	}
	if conn.SessionID() != e.ID() {
		e.replaced()
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		e.hub.fire(key, Deleted)
		return nil, err
	case err != nil:
		e.disconnectedLater(key)
		return nil, classify(err)
	}
	e.Go(func() {
		select {
		case ev := <-ch:
			e.hub.fire(key, eventOf(ev.Type))
		case <-e.client.running.Done():
		}
	})
	return names, nil
}

func eventOf(t zk.EventType) Event {
	switch t {
	case zk.EventNodeDeleted:
		return Deleted
	case zk.EventNodeDataChanged, zk.EventNodeChildrenChanged:
		return Changed
	}
	return Disconnected // the session ended, or the connection was closed
}

// disconnectedLater tells of a watch that could not be set, when attend has had time to see whether the connection is gone.
func (e *Epoch) disconnectedLater(key watchKey) {
	_ = e.Pause(e.client.running, e.client.poll())
	e.hub.fire(key, Disconnected)
}
