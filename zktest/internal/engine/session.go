package engine

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
	frames    uint64       // sent to its client, where that is counted
	held      []*heldQueue // on each member
	owner     *member      // in an ensemble: the member that speaks for it; nil until one has
	lastHeard time.Time
	bucket    time.Duration // expiry boundary it is filed under, 0 for none
}

// belongsTo reports whether a member may speak for the session. If none did so far it may from now on.
func (s *session) belongsTo(m *member) bool {
	if s.owner == nil {
		s.owner = m
	}
	return s.owner == m
}

// heldOf returns the session's queue on the server of a connection; that of the connection if it has none there.
func (s *session) heldOf(c *conn) *heldQueue {
	i := c.srv.order.standing().index
	for len(s.held) <= i {
		s.held = append(s.held, nil)
	}
	if s.held[i] == nil {
		s.held[i] = c.held
	}
	return s.held[i]
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

// firstSessionID is the id before the first that a server gives out, by its start and its number in the ensemble.
func firstSessionID(start time.Time, server int) int64 {
	return int64(uint64(start.UnixMilli())<<24>>8 | uint64(server)<<56)
}
