package zksync

import (
	"fmt"
	"net/http"
	"time"
)

// Healthy returns nil while leases can be granted and kept: the session is connected, its server has not owed
// an answer for a third of the session timeout, and no lease lacks the leader's proof. It sends nothing.
func (s *Session) Healthy() error {
	wrap := func(err error) error { return &Error{Package: "zksync", Op: "healthy", Err: err} }
	e := s.made().Client().Current()
	switch state := s.State(); {
	case state == Closed:
		return wrap(ErrClosed)
	case e == nil || !e.Valid():
		return wrap(fmt.Errorf("%w: the next session is not open yet", ErrSessionExpired))
	case state != Connected:
		return wrap(fmt.Errorf("not connected; no server has answered for %v", time.Since(e.Heard()).Round(time.Millisecond)))
	case e.Silence() > s.Timeout()/3:
		return wrap(fmt.Errorf("the server has owed an answer for %v", e.Silence().Round(time.Millisecond)))
	case !e.Proven():
		return wrap(fmt.Errorf("no proof that the servers' leader counts the session as alive"))
	}
	return nil
}

// HealthHandler answers 200 while s is [Session.Healthy], else 503 and why.
func HealthHandler(s *Session) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
