package zktest

import (
	"errors"
	"time"
)

// inBubble reports whether the calling goroutine is in a synctest bubble. Nothing in the standard library says so, but time begins
// there in the year 2000.
func inBubble() bool {
	y := time.Now().Year()
	return y >= 2000 && y < 2010
}

var errElsewhere = errors.New("zktest: the server was made outside of the synctest bubble that connects to it, or the other way " +
	"round: time would stand still; call Run inside synctest.Test, with the bubble's t")

// sameBubble fails the test, once, if server and client do not share a notion of time.
func (s *Server) sameBubble() error {
	if inBubble() == s.bubble {
		return nil
	}
	s.elsewhere.Do(func() { s.errorf("%v", errElsewhere) })
	return errElsewhere
}
