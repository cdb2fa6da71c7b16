package zktest

import (
	"slices"
	"sync"
)

// owner knows the sessions of one client that this package has made and closes itself. The client has one at a time: when it begins
// the next, nobody but the server's clock can end the one before, so that is not what a test has left over.
type owner struct {
	mu     sync.Mutex
	ids    []int64
	closed bool
	ends   int64 // the session that the client ends when it is closed; 0 for none
}

// newOwner returns the owner of a client that connects to these servers.
func newOwner(srvs ...*Server) *owner {
	o := &owner{}
	for _, s := range srvs {
		s.mu.Lock()
		s.owners = append(s.owners, o)
		s.mu.Unlock()
	}
	return o
}

// joined is told each session that the client begins.
func (o *owner) joined(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, id)
}

// close is called right before the client is closed. lost says that it had been told the end of its last session, too. A
// session that the servers begin from now on is none that the client knows of.
func (o *owner) close(lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if !lost && len(o.ids) > 0 {
		o.ends = o.ids[len(o.ids)-1]
	}
}

// hasGivenUp reports whether the session is one that the client had and could not end.
func (o *owner) hasGivenUp(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed && id != o.ends && slices.Contains(o.ids, id)
}

// hasGivenUp reports whether the session is one of a client of this package that has given it up.
func (s *Server) hasGivenUp(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.owners, func(o *owner) bool { return o.hasGivenUp(id) })
}
