package engine

import "time"

// EnsembleConfig says how the members of an ensemble work together. The zero value has the defaults
// of a real one in proportion to the tick.
type EnsembleConfig struct {
	// SyncLimit is how long a member that is cut off takes to notice; 5 ticks if zero.
	SyncLimit time.Duration
	// LeaderLimit is the same for a leader that has lost the majority; SyncLimit if zero.
	LeaderLimit time.Duration
	// Election is how long those who noticed need to agree on a leader; a tenth of a tick if zero.
	Election time.Duration
	// Leader is the index of the member that leads at first, without an election.
	Leader int
	// OnElected is told of each member that takes over. It runs while the state is locked.
	OnElected func(i int, at time.Time)
}

// Ensemble is several servers with one history. Each member is a [Server] with its own network,
// clients and watches, and a tree of its own into which it applies the common transactions in their order.
// One of them leads: it alone orders transactions and decides about sessions.
//
// Everything is guarded by the lock of the history.
type Ensemble struct {
	*history
	cfg     EnsembleConfig
	n       int
	members []*member
	leader  *member // the last one elected that has not given up since; it need not be reachable
	term    int     // counts leaders
	ballot  *time.Timer

	log       []*request // committed writes and syncs, in order, that some member has not applied
	base      int        // how many were there before those
	announced int64      // highest zxid that was committed
	closed    bool
}

// NewEnsemble returns n running members, configured by member, that listen nowhere yet. The ticks of
// all must be the same.
func NewEnsemble(n int, member func(i int) Config, cfg EnsembleConfig) *Ensemble {
	e := &Ensemble{n: n}
	for i := range n {
		s := New(member(i))
		if i == 0 {
			e.history = s.history
		} else { // the members share the first one's clock
			s.history, s.clock = e.history, e.members[0].clock
		}
		s.lastSession = firstSessionID(s.clock.start, i+1)
		e.members = append(e.members, newMember(e, s, i))
	}
	tick := e.members[0].cfg.Tick
	if cfg.SyncLimit <= 0 {
		cfg.SyncLimit = 5 * tick
	}
	if cfg.LeaderLimit <= 0 {
		cfg.LeaderLimit = cfg.SyncLimit
	}
	if cfg.Election <= 0 {
		cfg.Election = tick / 10
	}
	e.cfg = cfg
	e.mu.Lock()
	defer e.mu.Unlock()
	e.takeOver(e.members[cfg.Leader])
	e.review()
	return e
}

// Member returns a server by its index.
func (e *Ensemble) Member(i int) *Server { return e.members[i].Server }

// Leader returns the index of the member that leads, or -1. A leader that has been cut off from too many
// others leads until it notices.
func (e *Ensemble) Leader() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader == nil {
		return -1
	}
	return e.leader.index
}

// Serving reports whether a member serves clients: it leads, or follows, or has not noticed yet
// that it does not.
func (e *Ensemble) Serving(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[i]
	return m.role != looking && !m.stopped && !m.frozen
}

// At returns the index of the member that a session is connected to, or -1.
func (e *Ensemble) At(id int64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if sess := e.sessions[id]; sess != nil && sess.conn != nil {
		return sess.conn.srv.order.standing().index
	}
	return -1
}

// Quorate reports whether there is a leader that can commit.
func (e *Ensemble) Quorate() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.quorate()
}

// quorate reports whether the leader is in contact with the majority, itself included.
func (e *Ensemble) quorate() bool {
	n := 0
	for _, m := range e.members {
		if m.inContact() {
			n++
		}
	}
	return n > e.n/2
}

// reached returns the members that hear of a proposal made now, as bits.
func (e *Ensemble) reached() uint64 {
	var set uint64
	for _, m := range e.members {
		if m.inContact() {
			set |= 1 << m.index
		}
	}
	return set
}

// Close closes all members.
func (e *Ensemble) Close() {
	e.mu.Lock()
	e.closed = true
	stopTimer(&e.ballot)
	e.stopLeading()
	forget(e.pending)
	e.pending = nil
	e.mu.Unlock()
	for _, m := range e.members {
		m.Close()
	}
}

// stopLeading stops what only a leader does.
func (e *Ensemble) stopLeading() {
	stopTimer(&e.expiryTimer)
	stopTimer(&e.commitTimer)
	e.expiryAt = 0
	if e.leader != nil {
		stopTimer(&e.leader.reapTimer)
	}
}

// epochBits is how far left of the counter a zxid has the number of its leader.
const epochBits = 32
