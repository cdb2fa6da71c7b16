package servers

import (
	"fmt"
	"time"
)

// Dead says what the servers know against the client of a session; empty for a living one, and for one that the report
// knows nothing of. The holder must have been read before the look began: the report does not know younger sessions.
func (r *Report) Dead(session int64) (text string, probably bool) {
	c, known := r.Clients[session]
	switch {
	case !known:
		return "", false
	case c.Connected:
		if c.HeardMS < 0 || c.TimeoutMS <= 0 || 3*c.HeardMS <= 2*c.TimeoutMS {
			return "", false
		}
		heard := time.Duration(c.HeardMS) * time.Millisecond
		return fmt.Sprintf("last heard %d s ago%s", heard/time.Second, c.free(c.TimeoutMS-c.HeardMS)), true
	case c.Exists != nil && !*c.Exists:
		return "its session does not exist (ZOOKEEPER-4837): release it", true
	case !r.Tells:
		return "", false
	}
	// A server that is not named may have the connection. Then the leader hears of it each third of the timeout.
	recent := c.ExpiresInMS >= 0 && c.TimeoutMS > 0 && 3*c.ExpiresInMS > 2*c.TimeoutMS
	return "not connected to any server" + c.free(c.TimeoutMS), !recent
}

// free says when the servers free what the client holds: in so many ms, or earlier if they say so.
func (c *Client) free(ms int64) string {
	if c.ExpiresInMS >= 0 {
		ms = c.ExpiresInMS
	}
	if c.TimeoutMS <= 0 && c.ExpiresInMS < 0 {
		return ""
	}
	return fmt.Sprintf(": free in at most %d s", (max(ms, 0)+999)/1000)
}
