package servers

import (
	"fmt"
	"slices"
)

// Dead says what the servers know against the client of a session; empty for a living one, and where they do not say. The
// node of the session must have been read before the look began: the report does not know younger sessions.
func (r *Report) Dead(session int64) (text string, probably bool) {
	c, known := r.Clients[session]
	switch {
	case !known && (r.decided || !r.allConnections()):
		return "", false // it has ended, and its nodes with it
	case !known:
		return "not connected to any server", r.allReachable()
	case c.Exists != nil && !*c.Exists && !c.Connected:
		return "its session does not exist (ZOOKEEPER-4837): release it", true
	case !c.Connected && r.allConnections():
		// A server that is not named, or not reachable, may have the connection. Then the leader hears of it each third of the timeout.
		recent := c.TimeoutMS > 0 && 3*c.ExpiresInMS > 2*c.TimeoutMS || c.ExpiresInMS < 0 && !r.allReachable()
		return "not connected to any server" + c.free(), !recent
	case c.TimeoutMS > 0 && 3*c.HeardMS > 2*c.TimeoutMS:
		return fmt.Sprintf("last heard %d s ago", c.HeardMS/1000) + c.free(), true
	}
	return "", false
}

// allConnections reports whether each server that is reachable shows its connections.
func (r *Report) allConnections() bool {
	return r.Tells && !slices.ContainsFunc(r.Servers, func(s Server) bool { return s.Reachable && !s.has("cons") })
}

func (r *Report) allReachable() bool {
	return !slices.ContainsFunc(r.Servers, func(s Server) bool { return !s.Reachable })
}

// free says when the servers free what the client holds.
func (c *Client) free() string {
	ms := c.TimeoutMS
	switch {
	case c.HeardMS >= 0 && c.TimeoutMS > 0:
		ms -= c.HeardMS
	case c.ExpiresInMS >= 0:
		ms = c.ExpiresInMS
	}
	if c.TimeoutMS <= 0 && c.ExpiresInMS < 0 {
		return ""
	}
	return fmt.Sprintf(": free in at most %d s", (max(ms, 0)+999)/1000)
}
