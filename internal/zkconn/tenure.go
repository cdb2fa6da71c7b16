package zkconn

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// tenure is an epoch as its client manages it: it connects the epoch, keeps the client's state up to date, and ends it.
type tenure struct {
	*Epoch
	client *Client
	hosts  *hosts
	events <-chan zk.Event

	parting bool // kill does not cut the connection; guarded by mu
}

func (c *Client) newTenure(number int64) *tenure {
	t := &tenure{Epoch: newEpoch(&c.shared, number), client: c}
	t.hosts = &hosts{epoch: t.Epoch, names: c.names, owner: t, quit: make(chan struct{})}
	t.lose = t.end
	t.leaseClock.fire = func() { t.end(t.silent()) }
	return t
}

// greeted implements owner.
func (t *tenure) greeted(w *wire, r connectReply, sent time.Time) error {
	if r.id == 0 {
		if t.ID() == 0 {
			return w.violation(errors.New("no session id in the answer to a request for a new session"))
		}
		t.vanish()
		t.expired(w)
		return nil // the client library must see the reply, so that it forgets the session
	}
	// The watches of the last connection ended with it. Subscribers hear of that before anything of the new
	// connection is looked at. So no subscriber can mistake an old watch for one that the new server holds.
	t.hub.disconnected()
	if old := t.current(); old != nil { // the goroutine that closed it has not reported that yet
		t.disconnected(old, ErrOver, true)
	}
	if id := t.ID(); id != 0 && id != r.id {
		return w.violation(fmt.Errorf("session 0x%x was asked for, 0x%x came", id, r.id))
	}
	log, err := t.link(w, r, sent)
	if err != nil {
		return err
	}
	log()
	t.lookAgain()
	t.leaseClock.wake() // the next heartbeat was planned with the timeout of before
	return nil
}

// link makes w the connection from now on, and reports that to the client. log logs it.
func (t *tenure) link(w *wire, r connectReply, sent time.Time) (log func(), err error) {
	t.telling.Lock()
	defer t.telling.Unlock()
	t.mu.Lock()
	if t.alive.Err() != nil {
		t.mu.Unlock()
		return nil, ErrOver
	}
	if w.ending() { // its first request, a sync, could not be written: see unseen. If it ends later, unlink waits for us
		t.mu.Unlock()
		return nil, net.ErrClosed
	}
	timeout := time.Duration(r.timeout) * time.Millisecond
	t.id.Store(r.id)
	t.agreed.Store(int64(timeout))
	t.granted.Store(int64(timeout))
	t.passwd = r.passwd
	t.leaseClock.start(sent, timeout, t.cfg.LeaseFraction)
	t.wire = w
	t.serial++
	close(t.linked)
	t.mu.Unlock()
	log = t.dials.linked(r.id, w.addr)
	if t.cfg.OnSession != nil {
		t.cfg.OnSession(r.id, r.passwd)
	}
	t.client.enter(t.Epoch, Connected)
	return log, nil
}

// refused implements owner.
func (t *tenure) refused(_ *wire, r connectReply, err error) {
	t.mu.Lock()
	if t.id.CompareAndSwap(0, r.id) {
		t.passwd = r.passwd // so that the session can be ended on the servers
	}
	t.mu.Unlock()
	t.client.refuse(err)
}

// expired implements owner: it ends the epoch.
func (t *tenure) expired(w *wire) {
	t.end(fmt.Errorf("%w: %s says that the session has expired", ErrOver, w.addr))
}

// disconnected implements owner.
func (t *tenure) disconnected(w *wire, err error, open bool) {
	t.hub.disconnected()
	if !open && isTimeout(err) {
		t.pace.tooLate()
	}
	killed, log := t.unlink(w, err)
	log()
	if !killed && !open && t.running.Err() == nil { // else nothing waits for a connection any more
		t.dials.failed(w.target, diagnoseHandshake(err, w.raw, w.limit))
	}
	var broken *violationError
	if errors.As(err, &broken) && open {
		t.end(fmt.Errorf("%w: %w", ErrOver, err))
	}
}

// unlink takes w out of use, if it is the present connection, and reports why to the client. killed means
// that the epoch was killed before; then nothing needs to know. log logs the loss.
func (t *tenure) unlink(w *wire, cause error) (killed bool, log func()) {
	t.telling.Lock()
	defer t.telling.Unlock()
	t.mu.Lock()
	current := t.wire == w
	if current {
		t.wire = nil
		t.linked = make(chan struct{})
	}
	killed = t.alive.Err() != nil
	t.mu.Unlock()
	if current && !killed && t.client.State() != Closed {
		t.client.enter(t.Epoch, Suspended)
		return killed, t.dials.unlinked(w.target, diagnoseLoss(cause, t.stall(), elapsed(t.Heard(), time.Now())))
	}
	return killed, func() {}
}

// end ends the epoch. The order matters. First Valid becomes false, and the holders
// hear of it by the hooks. Only then told is closed and the connection cut: after
// that, the next epoch ends this session on the servers, which then grant to others.
func (t *tenure) end(cause error) {
	t.leaseClock.stop()
	hooks, first := t.session.end(cause)
	if !first {
		return
	}
	id := t.ID()
	if id != 0 {
		t.client.enter(t.Epoch, Lost) // before the hooks, so that these find the session lost
	}
	for h := range hooks {
		h.fn(cause)
	}
	log := func() {}
	if id != 0 && t.client.State() != Closed {
		log = t.dials.outages.ended(id, cause) // before told: the next session may be there soon after that
	}
	close(t.told)
	t.kill()
	log()
}

// kill cuts the connection, and keeps the client library from dialling again. If the session is being ended on the servers, that
// goes first: the library would wait a second for the answer.
func (t *tenure) kill() {
	t.mu.Lock()
	t.dead()
	w, parting := t.dialled, t.parting
	t.mu.Unlock()
	if w != nil && !parting {
		// The caller may be the goroutine that reads this connection.
		// That is harmless: it then finds its connection closed.
		w.fail(ErrOver)
	}
}

// handshakeGrace is how long Stop waits, at most, for the answer to a request for a new session. It is short: such a session
// has no nodes yet, and a Connect whose deadline has passed must not wait for a silent server.
const handshakeGrace = 50 * time.Millisecond

// awaitGreeting waits a moment for the answer to a request for a new session that was sent before Stop began. The
// answer has the id and the password of the session. Without them no request can end it.
func (t *tenure) awaitGreeting() {
	t.mu.Lock()
	w := t.dialled // if there is another after this one, it sends no handshake: see note
	t.mu.Unlock()
	if w == nil || t.ID() != 0 || !w.hasGreeted() {
		return
	}
	select {
	case <-w.met.Done():
	case <-time.After(handshakeGrace):
	case <-t.closing.Done():
	}
}

// part sets whether kill waits. Without a connection it does not.
func (t *tenure) part(wait bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parting = wait && t.wire != nil && t.alive.Err() == nil
	return t.parting
}

// shutdown ends the client library of the epoch. If graceful is set and there is a connection,
// it first ends the session on the servers, but gives that up when the client does.
func (t *tenure) shutdown(graceful bool) {
	graceful = graceful && t.part(true)
	quitted := make(chan struct{})
	quit := func() {
		defer close(quitted)
		t.conn.Close() // sends closeSession and waits for the answer, at most a second
	}
	if graceful {
		go quit()
		select {
		case <-quitted:
		case <-t.closing.Done():
		}
	}
	t.end(ErrClosed)
	t.part(false)
	t.kill()
	if !graceful {
		// Close of the client library queues a closeSession that will never be sent, and waits a second for
		// its answer, unless the library's loop comes by to fail what is queued. The loop has no connection
		// any more. So let it get to our dialer, where it waits until quit is closed, and let the request
		// be queued meanwhile. If either takes longer than a millisecond, only that second is lost.
		time.Sleep(time.Millisecond)
		go quit()
		time.Sleep(time.Millisecond)
	}
	close(t.hosts.quit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range t.events { // closed when the client's loop has ended
		}
		select {
		case <-quitted:
		case <-t.closing.Done(): // Close would wait a second for an answer that nothing will give
		}
	}()
	// The loop may hang for ever if a user was using the client library at
	// this moment: it puts three answers where there is room for two. Then it is
	// left alone. It holds nothing of ours except a connection that is closed.
	sleep(2*time.Second, ended)
	t.sendBuffer.end()
}
