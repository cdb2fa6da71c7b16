package zkconn

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// session is one ZooKeeper session, as all its connections know it: what the servers have granted, the proof
// that it is alive, its watches, and its end. It is only embedded in Epoch.
type session struct {
	*shared
	leaseClock
	hub    hub
	number int64

	conn       *zk.Conn
	sendBuffer sendBuffer

	id     atomic.Int64
	agreed atomic.Int64  // the timeout that the servers granted, a time.Duration
	seen   atomic.Int64  // the greatest zxid that an answer has had
	unseen unseen        // an event whose state no answer has had yet
	xids   atomic.Uint32 // of our own requests, over all connections: see wire.expect
	narrow atomic.Bool   // a connection was cut because it did not take a small request at once: see writeLimit

	entered atomic.Bool       // calls may begin: see tenure.enter
	lose    func(cause error) // ends the epoch: tenure.end

	told chan struct{} // closed when all hooks of OnOver have returned

	// alive ends when the epoch must have no connection any more: from then on the client library must not dial.
	// It is about connections; whether the session is alive is what the clock knows. dead ends it, with mu held.
	alive context.Context
	dead  context.CancelFunc

	mu     sync.Mutex
	cause  error // set before over is closed
	passwd []byte
	gone   bool // the servers themselves said that the session has ended
	hooks  map[*LossHook]struct{}
}

// Number counts the epochs of a client from 1.
func (s *session) Number() int64 { return s.number }

// ID is the session id.
func (s *session) ID() int64 { return s.id.Load() }

// Timeout is the session timeout that the servers granted.
func (s *session) Timeout() time.Duration { return time.Duration(s.agreed.Load()) }

// expected is Timeout or, before the first connection, the timeout to ask for.
func (s *session) expected() time.Duration { return cmp.Or(s.Timeout(), s.cfg.Timeout) }

// Seen is the zxid of the newest transaction that an answer in this session has named.
// Whatever an answer showed was there by then.
func (s *session) Seen() int64 { return s.seen.Load() }

// see notes the zxid of an answer; events have none.
func (s *session) see(zxid int64) {
	raise(&s.seen, zxid)
	raise(&s.newest, zxid)
}

// answered notes that a request was answered: when it was sent, and whether the leader answered it.
func (s *session) answered(sent time.Time, led bool) {
	s.pace.good()
	s.leaseClock.advance(sent, led)
}

// ahead reports whether calls may begin in the epoch: with Config.ForwardOnly only when its servers have been compared, and
// with Config.Admit when that has returned.
func (s *session) ahead() bool { return !s.compares() && s.cfg.Admit == nil || s.entered.Load() }

// compares reports whether compare comes first.
func (s *session) compares() bool { return s.cfg.ForwardOnly && s.number > 1 }

// raise makes n at least least.
func raise(n *atomic.Int64, least int64) {
	for {
		now := n.Load()
		if least <= now || n.CompareAndSwap(now, least) {
			return
		}
	}
}

// Over is closed when the session has ended or can no longer be proved alive.
func (s *session) Over() <-chan struct{} { return s.leaseClock.over }

// Cause says why the epoch is over; nil while it is not.
func (s *session) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// LossHook is a function that was registered with OnOver.
type LossHook struct {
	s  *session
	fn func(cause error)
}

// WhyOver says, for people, why the session has ended or can no longer be proved alive; "" if it can.
func (s *session) WhyOver() string {
	err := s.Cause()
	switch {
	case err == nil && s.Valid():
		return ""
	case err == nil: // the timer that ends the epoch is late
		err = s.silent()
	}
	return plain(err)
}

// plain is the text of the cause of an epoch's end without what all such causes say.
func plain(cause error) string {
	return strings.TrimPrefix(strings.TrimPrefix(cause.Error(), ErrOver.Error()+": "), "zksync: ")
}

// silent is the cause of an epoch that the clock has ended.
func (s *session) silent() error {
	return fmt.Errorf("%w: %s, with a session timeout of %v", ErrOver, s.silence(time.Now()), s.Timeout())
}

// OnOver registers fn. It is called once when the epoch is over, in the goroutine that finds out; at once
// if the epoch is over already. fn must not block: such functions end leases, one after the other.
func (s *session) OnOver(fn func(cause error)) *LossHook {
	h := &LossHook{s, fn}
	s.mu.Lock()
	cause := s.cause
	if cause == nil {
		s.hooks[h] = struct{}{}
	}
	s.mu.Unlock()
	if cause != nil {
		fn(cause)
	}
	return h
}

// Stop ends the registration. It does not wait for a call that runs.
func (h *LossHook) Stop() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	delete(h.s.hooks, h)
}

// end makes the session over, once. It returns the hooks to be called. None is missed:
// OnOver reads cause under the same lock, and calls its function itself if cause is set.
func (s *session) end(cause error) (hooks map[*LossHook]struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return nil, false
	}
	hooks = s.hooks
	s.cause, s.hooks = cause, nil
	close(s.leaseClock.over)
	return hooks, true
}

// vanish notes that the servers have said that the session has ended.
func (s *session) vanish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// remains are the credentials of the session if it may still exist on the servers; else nil.
func (s *session) remains() *Credentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ID() == 0 || s.gone {
		return nil
	}
	return &Credentials{s.ID(), s.passwd}
}
