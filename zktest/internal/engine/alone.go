package engine

import (
	"bytes"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// alone is a server that is no member of an ensemble: it orders its requests by itself, reads among them.
type alone struct{ *Server }

func (a alone) begin(c *conn, r *request) {
	sess := &session{id: c.session, timeout: c.timeout, conn: c, lastHeard: a.now()}
	a.sessions[sess.id] = sess
	sess.heldOf(c)
	a.touch(sess, c.timeout)
	a.submit(r)
}

// revalidate closes the connection that the session had before it looks at the password, as the real server does.
func (a alone) revalidate(c *conn, r *request, q wire.ConnectRequest) {
	sess := a.sessions[q.Session]
	a.supersede(q.Session, c)
	c.session = q.Session
	if sess == nil || sess.closing || !bytes.Equal(q.Password, password(q.Session)) {
		r.code = wire.CodeSessionExpired
		a.finishConnect(r)
		return
	}
	sess.conn, sess.timeout, sess.lastHeard = c, c.timeout, a.now()
	a.touch(sess, c.timeout)
	a.finishConnect(r)
}

// submit takes a request through both stages. Without a commit latency it is
// prepared and committed in one go; with it, later requests are prepared against what is outstanding.
func (a alone) submit(r *request) {
	a.prepare(r)
	now := time.Now()
	if r.write() && a.cfg.CommitLatency > 0 {
		r.due = now.Add(a.cfg.CommitLatency)
	} else if len(a.pending) == 0 {
		a.publish(r)
		return
	} else {
		r.due = now // behind its predecessors: replies leave in the order of the requests
	}
	a.pending = append(a.pending, r)
	a.armCommit()
}

func (a alone) publish(r *request) {
	if r.write() {
		if r.call.Op == wire.OpClose {
			a.dropSession(r)
		}
		a.commit(r)
	}
	if r.call.Op == wire.OpCreateSession && r.code == wire.CodeOK {
		a.renew(r)
	}
	a.deliver(r)
}

// dropSession forgets a session whose close is being committed. The connection of a
// session that did not ask for it itself is closed as well; it gets no events about its own end.
func (a alone) dropSession(r *request) {
	sess := a.sessions[r.session]
	if sess == nil {
		return
	}
	delete(a.sessions, r.session)
	a.expiry.remove(sess)
	if c := sess.conn; c != nil && c != r.conn {
		c.shut()
	}
	sess.conn = nil
}

func (a alone) hear(c *conn) bool  { return a.Server.hear(c) }
func (a alone) first(int64) bool   { return true }
func (a alone) leads() bool        { return true }
func (a alone) commits() bool      { return true }
func (a alone) serves() bool       { return true }
func (a alone) inContact() bool    { return true }
func (a alone) views() []*Server   { return []*Server{a.Server} }
func (a alone) standing() standing { return standing{mode: "standalone"} }

func (a alone) orderer() *Server {
	if a.closed || a.stopped {
		return nil
	}
	return a.Server
}

// halted drops connections, timers and everything that is not committed.
func (a alone) halted() {
	for _, t := range []**time.Timer{&a.expiryTimer, &a.commitTimer, &a.reapTimer} {
		stopTimer(t)
	}
	a.expiryAt = 0
	a.disconnectAll()
	forget(a.pending)
	a.pending = nil
	a.out = tree.NewOutstanding()
	a.zxid = a.tree.Zxid
}

func (a alone) restarted(keep bool) {
	a.expiry = newExpiryQueue(a.cfg.Tick)
	if !keep {
		a.tree, a.sessions, a.zxid = tree.New(), map[int64]*session{}, 0
		return
	}
	for _, sess := range a.sessions {
		sess.bucket, sess.closing, sess.conn = 0, false, nil
		a.touch(sess, sess.timeout)
	}
	a.armReaper()
}

func (a alone) froze() {}

func (a alone) thawed() {
	a.commitPending()
	a.runExpiry()
	a.armCommit()
}

func (alone) apart() []string { return nil }
