package engine

import "time"

// jitter is by how much longer the next frame to a client takes, with [Config.Reordering]. It depends on the seed, on
// which session it is, and on how many frames that had before, and on nothing else: a run in virtual time can
// be repeated, however its goroutines are scheduled. What goes to one client stays in order all the same.
func (c *conn) jitter() time.Duration {
	limit := c.srv.cfg.Reordering
	if limit <= 0 {
		return 0
	}
	sess := c.srv.sessions[c.claimed]
	if sess == nil {
		return 0
	}
	sess.frames++
	ordinal := uint64(sess.id - firstSessionID(c.srv.clock.start, 0)) // ids begin with the time of the start
	return time.Duration(mix(c.srv.cfg.Seed^mix(ordinal^mix(sess.frames))) % uint64(limit+1))
}

// mix scatters the bits of a number (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
