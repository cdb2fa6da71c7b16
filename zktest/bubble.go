package zktest

import "time"

// inBubble reports whether the calling goroutine is in a synctest bubble. Nothing in the standard library says so, but time begins
// there in the year 2000.
func inBubble() bool {
	y := time.Now().Year()
	return y >= 2000 && y < 2010
}

// elsewhere says that server and client do not share a notion of time; "" if they do.
func (s *Server) elsewhere() string {
	if inBubble() == s.bubble {
		return ""
	}
	of := ""
	if name := nameOf(s.tb); name != "" {
		of = " of" + name
	}
	return "zktest: the server" + of + " was made outside of the synctest bubble that connects to it, or the other way round: " +
		"time would stand still; call Run inside synctest.Test, with the bubble's t"
}

// sameBubble fails t if the server is elsewhere.
func (s *Server) sameBubble(t TB) {
	t.Helper()
	if text := s.elsewhere(); text != "" {
		t.Fatal(text)
	}
}

// mustBeHere panics if the server is elsewhere. A client dials again after every error, in virtual time without a rest,
// and what a test has logged is printed at its end, which would not come: nothing less than a panic ends that.
func (s *Server) mustBeHere() {
	if text := s.elsewhere(); text != "" {
		panic(text)
	}
}
