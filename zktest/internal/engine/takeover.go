package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
)

// takeOver makes a member the leader. Proposals that have reached it are committed, others never
// will be. Every session gets its full timeout again, and belongs to the server that it is next seen at.
func (e *Ensemble) takeOver(m *member) {
	e.stopLeading()
	stopTimer(&e.ballot)
	e.term++
	m.lags, m.lagID = 0, m.lagID+1
	m.role, m.term, e.leader = leading, e.term, m
	if m.blank {
		e.startAnew(m)
	}
	for m.applied < e.base+len(e.log) {
		m.applyNext()
	}
	m.received = m.applied
	proposed := e.pending
	e.pending = nil
	for i, r := range proposed {
		if r.reached&(1<<m.index) != 0 {
			m.publish(r)
		} else {
			forget(proposed[i : i+1])
		}
	}
	e.out = tree.NewOutstanding()
	e.zxid = (max(e.zxid, m.tree.Zxid)>>epochBits + 1) << epochBits
	m.tree.Zxid = e.zxid
	e.expiry = newExpiryQueue(m.cfg.Tick)
	for _, sess := range e.sessions {
		sess.bucket, sess.closing, sess.conn, sess.owner = 0, false, nil, nil
		m.touch(sess, sess.timeout)
	}
	m.armReaper()
	e.admit() // or it would find that it has no majority
	if e.cfg.OnElected != nil {
		m.RunHook(func() { e.cfg.OnElected(m.index, m.now()) })
	}
}

// startAnew is the end of the history: all who could vote had lost their data.
func (e *Ensemble) startAnew(m *member) {
	forget(e.pending)
	e.pending, e.log = nil, nil
	e.sessions = map[int64]*session{}
	m.blank, m.applied = false, e.base
	for _, o := range e.members {
		if o != m {
			o.blank = true
		}
	}
}

// admit lets those who look for a leader follow the one there is.
func (e *Ensemble) admit() {
	l := e.leader
	if l == nil || l.role != leading || !l.connected() {
		return
	}
	for _, m := range e.members {
		if m.role == looking && m.connected() {
			e.admitOne(m)
		}
	}
}

// admitOne brings a member up to date before it serves anybody.
func (e *Ensemble) admitOne(m *member) {
	l := e.leader
	m.role, m.term, m.lostAt = following, e.term, time.Time{}
	if m.blank {
		m.tree = l.tree.Copy()
		m.blank, m.applied = false, l.applied
	}
	m.received = e.base + len(e.log)
	for m.applied < m.received {
		m.applyNext()
	}
	for _, r := range e.pending {
		r.reached |= 1 << m.index
	}
	e.trim()
}

// rolledOver is called for each proposal: with the last zxid of an epoch the leader gives up instead of
// proposing, so that there is an election and a new epoch. A standalone server counts on.
func (m *member) rolledOver(r *request) bool {
	const last = 1<<epochBits - 1
	if r.zxid&last != last {
		return false
	}
	e := m.ens
	forget([]*request{r})
	e.leave(m)
	e.review()
	return true
}
