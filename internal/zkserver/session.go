package zkserver

import (
	"encoding/binary"
	"time"
)

// session is one client session. Guarded by Server.mu.
type session struct {
	id        int64
	timeout   time.Duration
	closing   bool // its close is prepared; it accepts nothing any more
	conn      *conn
	owner     *Server // in an ensemble: the member that speaks for it; nil until one has
	lastHeard time.Time
	bucket    time.Duration // expiry boundary it is filed under, 0 for none
}

// belongsTo tells whether a member may speak for the session. If none did so far it may from now on.
func (s *session) belongsTo(member *Server) bool {
	if s.owner == nil {
		s.owner = member
	}
	return s.owner == member
}

// expiryQueue files sessions under the tick boundary at which they expire. A session
// that is heard of at t with timeout T expires at the first boundary strictly
// after t+T, so between T and T plus one tick later: the rule of the real server.
type expiryQueue struct {
	tick    time.Duration
	buckets map[time.Duration]map[*session]struct{}
}

func newExpiryQueue(tick time.Duration) *expiryQueue {
	return &expiryQueue{tick: tick, buckets: map[time.Duration]map[*session]struct{}{}}
}

// touch files s for expiry after timeout, counted from now (time since the server's start).
func (q *expiryQueue) touch(s *session, now, timeout time.Duration) {
	at := (now+timeout)/q.tick*q.tick + q.tick
	if at == s.bucket {
		return
	}
	q.remove(s)
	b := q.buckets[at]
	if b == nil {
		b = map[*session]struct{}{}
		q.buckets[at] = b
	}
	b[s] = struct{}{}
	s.bucket = at
}

func (q *expiryQueue) remove(s *session) {
	b := q.buckets[s.bucket]
	delete(b, s)
	if len(b) == 0 {
		delete(q.buckets, s.bucket)
	}
	s.bucket = 0
}

// next returns the earliest boundary with a session, or 0.
func (q *expiryQueue) next() time.Duration {
	var first time.Duration
	for at := range q.buckets {
		if first == 0 || at < first {
			first = at
		}
	}
	return first
}

const passwordLen = 16

// password derives a session's password from its id, with the generator that the
// real server uses. It is a pure function so that it survives a restart; it protects nothing.
func password(id int64) []byte {
	const secret, mult, mask = 0xB3415C00, 0x5DEECE66D, 1<<48 - 1
	state := (uint64(id^secret) ^ mult) & mask
	out := make([]byte, 0, passwordLen)
	for range passwordLen / 4 {
		state = (state*mult + 0xB) & mask
		out = binary.LittleEndian.AppendUint32(out, uint32(state>>16))
	}
	return out
}
