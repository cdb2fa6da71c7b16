package zktest

import "sync"

// owner knows the sessions of one client that this package has made and closes itself. The client has one at a time: when it begins
// the next, nobody but the server's clock can end the one before, so that is not what a test has left over.
type owner struct {
	srvs []*Server

	mu  sync.Mutex
	ids []int64
}

// joined is told each session that the client begins.
func (o *owner) joined(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, id)
}

// closed is called at the end of the client. lost says that it had been told the end of its last session, too.
func (o *owner) closed(lost bool) {
	o.mu.Lock()
	ids := o.ids
	o.mu.Unlock()
	if !lost && len(ids) > 0 {
		ids = ids[:len(ids)-1]
	}
	for _, s := range o.srvs {
		s.mu.Lock()
		for _, id := range ids {
			s.givenUp[id] = true
		}
		s.mu.Unlock()
	}
}

// hasGivenUp tells whether the session is one of a client of this package that has given it up.
func (s *Server) hasGivenUp(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenUp[id]
}
