package zkconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Epoch is one ZooKeeper session, from its first handshake until its end, with a
// client connection of its own. All methods may be used by many goroutines.
type Epoch struct {
	client *Client
	cfg    *Config
	number int64
	conn   *zk.Conn
	events <-chan zk.Event
	hosts  *hosts
	hub    hub
	clock  leaseClock
	seen   atomic.Int64 // the greatest zxid that a server has told
	doubts doubts
	xids   atomic.Uint32 // of our own requests, over all connections: see wire.expect
	calls  sync.WaitGroup

	over chan struct{} // closed when the session ended or cannot be proved alive
	told chan struct{} // closed when everybody who asked has been told of that
	dead chan struct{} // closed when the client library must not dial again

	wanted chan struct{} // somebody depends on heartbeats; see Sustain

	// telling is held while wire changes and until the client has been told, or two
	// changes could be told in the wrong order. It comes before mu and the client's mu.
	telling sync.Mutex

	mu       sync.Mutex
	cause    error // set before over is closed
	id       int64
	passwd   []byte
	timeout  time.Duration
	wire     *wire
	serial   int64         // counts connections
	linked   chan struct{} // closed while there is a connection past its handshake
	onLost   map[*LossHook]struct{}
	killed   bool
	draining bool // no more calls
	expired  bool // the servers themselves said that the session is gone
	ended    bool // closeSession was answered

	adopted bool // see adopt.go
	up      bool // of an adopted connection: it has a session now
}

// Number counts the epochs of a client from 1.
func (e *Epoch) Number() int64 { return e.number }

// ID is the session id.
func (e *Epoch) ID() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.id
}

// Timeout is the session timeout that the servers granted.
func (e *Epoch) Timeout() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.timeout
}

// Conn is the client's own connection object. It dies with the epoch.
func (e *Epoch) Conn() *zk.Conn { return e.conn }

// Over is closed when the session has ended or can no longer be proved alive.
func (e *Epoch) Over() <-chan struct{} { return e.over }

// Cause says why the epoch is over; nil while it is not.
func (e *Epoch) Cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// Valid reports whether the session can be proved alive at this instant.
func (e *Epoch) Valid() bool {
	select {
	case <-e.over:
		return false
	default:
		return e.clock.valid()
	}
}

// Await waits for a connection: it returns nil at once while there is one, and
// otherwise blocks until there is, ctx ends, or the epoch is over.
func (e *Epoch) Await(ctx context.Context) error {
	e.mu.Lock()
	linked := e.linked
	e.mu.Unlock()
	select {
	case <-e.over:
		return ErrOver
	default:
	}
	select {
	case <-linked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.over:
		return ErrOver
	}
}

// Linked reports whether there is a connection now.
func (e *Epoch) Linked() bool { return e.connection() != 0 }

// connection numbers the connection that stands, 0 for none.
func (e *Epoch) connection() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire == nil && !e.up {
		return 0
	}
	return e.serial
}

// LossHook is one registration of [Epoch.OnLost].
type LossHook struct {
	e  *Epoch
	fn func(cause error)
}

// OnLost has fn called, once and in the goroutine that finds out, when the epoch
// is over; at once if it is already. fn must not block.
func (e *Epoch) OnLost(fn func(cause error)) *LossHook {
	h := &LossHook{e, fn}
	e.mu.Lock()
	cause := e.cause
	if cause == nil {
		e.onLost[h] = struct{}{}
	}
	e.mu.Unlock()
	if cause != nil {
		fn(cause)
	}
	return h
}

// Stop ends the registration; it does not wait for a call that runs.
func (h *LossHook) Stop() {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	delete(h.e.onLost, h)
}

// begin enters a call; it fails once the epoch is being shut down.
func (e *Epoch) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return false
	}
	e.calls.Add(1)
	return true
}

// greeted is told of a connect reply by the wire, before the client sees it.
func (e *Epoch) greeted(w *wire, r connectReply, sent time.Time) error {
	if r.id == 0 {
		e.mu.Lock()
		fresh := e.id == 0
		e.expired = true
		e.mu.Unlock()
		if fresh {
			return w.violation(errors.New("no session id in the answer to a request for a new session"))
		}
		e.lose(fmt.Errorf("%w: %s says that it expired", ErrOver, w.addr))
		return nil // the client must see it, to forget the session
	}
	// What the last connection's watches stood for ended with it. This comes before
	// anything of the new connection is looked at, so no subscriber can mistake an
	// old watch for one that the new server holds.
	e.hub.cut()
	e.mu.Lock()
	old := e.wire
	e.mu.Unlock()
	if old != nil { // whoever closed it has not got round to reporting it
		e.disconnected(old, ErrOver, true)
	}
	e.telling.Lock()
	defer e.telling.Unlock()
	e.mu.Lock()
	if e.id != 0 && e.id != r.id {
		e.mu.Unlock()
		return w.violation(fmt.Errorf("session 0x%x was asked for, 0x%x came", e.id, r.id))
	}
	if e.killed {
		e.mu.Unlock()
		return ErrOver
	}
	e.id, e.passwd = r.id, r.passwd
	e.timeout = time.Duration(r.timeout) * time.Millisecond
	e.wire = w
	e.serial++
	e.clock.start(sent, e.timeout, e.cfg.LeaseFraction)
	close(e.linked)
	e.mu.Unlock()
	e.client.connected(e)
	e.lookAgain()
	return nil
}

// Seen is the newest transaction that answers of this session have told of: whatever an answer
// showed was there by then. 0 on an adopted connection.
func (e *Epoch) Seen() int64 { return e.seen.Load() }

// see is told of the zxid of every answer; events have none.
func (e *Epoch) see(zxid int64) {
	for {
		seen := e.seen.Load()
		if zxid <= seen || e.seen.CompareAndSwap(seen, zxid) {
			return
		}
	}
}

// acknowledged is told by the wire of the send time of an answered request, and whether
// the answer came from the leader.
func (e *Epoch) acknowledged(sent time.Time, led bool) {
	e.clock.advance(sent, led)
	e.client.pace.good()
}

// disconnected is told by the wire, once, that a connection is no more.
func (e *Epoch) disconnected(w *wire, err error, open bool) {
	e.hub.cut()
	killed := e.unlink(w)
	if !killed {
		e.client.note(fmt.Errorf("%s: %w", w.addr, err))
		e.cfg.Logger.Debug("connection lost", "server", w.addr, "error", err)
	}
	var broken *violationError
	if errors.As(err, &broken) && open {
		e.lose(fmt.Errorf("%w: %w", ErrOver, err))
	}
}

// unlink takes w out of use, if it is the current connection, and tells the client.
// It reports whether the epoch was killed before, when nobody needs to be told.
func (e *Epoch) unlink(w *wire) (killed bool) {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.mu.Lock()
	current := e.wire == w
	if current {
		e.wire = nil
		e.linked = make(chan struct{})
	}
	killed = e.killed
	e.mu.Unlock()
	if current && !killed {
		e.client.suspended(e)
	}
	return killed
}

// lose ends the epoch: leases first, then the connection.
func (e *Epoch) lose(cause error) {
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return
	}
	e.cause = cause
	hooks := e.onLost
	e.onLost = nil
	close(e.over)
	e.mu.Unlock()
	e.client.lost(e) // whoever is told of the loss finds the session lost
	for h := range hooks {
		h.fn(cause)
	}
	close(e.told)
	e.clock.stop()
	e.kill()
}

// kill cuts the connection and keeps the client library from dialling again.
func (e *Epoch) kill() {
	e.mu.Lock()
	w := e.wire
	first := !e.killed
	e.killed = true
	e.mu.Unlock()
	if first {
		close(e.dead)
	}
	if e.adopted {
		return
	}
	if w != nil {
		// In a goroutine of its own would be simpler to reason about, but the caller
		// may be the wire's reader, which then just finds its connection closed.
		w.fail(ErrOver)
	}
	e.hosts.kill()
}

// endedCleanly reports whether the session was ended on the servers by Close.
func (e *Epoch) endedCleanly() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// shutdown joins everything that the epoch started. With graceful set and a
// connection at hand it ends the session on the servers first.
func (e *Epoch) shutdown(graceful bool) {
	e.mu.Lock()
	e.draining = true
	linked := e.wire != nil
	e.mu.Unlock()
	closed := make(chan struct{})
	quit := func() {
		defer close(closed)
		e.conn.Close() // sends closeSession and waits for the answer, at most a second
	}
	if graceful && linked {
		go quit()
		<-closed
	}
	e.lose(ErrClosed)
	e.kill()
	if !graceful || !linked {
		// Close queues a closeSession that will never be sent, and waits a second for
		// its answer, unless the client's loop comes by to fail what is queued. So let
		// the loop, whose connection is gone, get to our dialer, where it stands until
		// quit is closed, and let the request be queued meanwhile. If either takes longer
		// than a millisecond, all that is lost is the second.
		time.Sleep(time.Millisecond)
		go quit()
		time.Sleep(time.Millisecond)
	}
	close(e.hosts.quit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range e.events { // closed when the client's loop has ended
		}
		<-closed
	}()
	// The loop may stand still for ever if somebody else was using the client at this moment:
	// it puts three answers where there is room for two. Then it is left; it holds nothing of ours
	// but a connection that is closed.
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
	e.calls.Wait()
}
