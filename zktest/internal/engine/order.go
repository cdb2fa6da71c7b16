package engine

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// order is how the requests of a server get their places in a history, and who decides about its sessions. A server on its own
// does both ([alone]); a member of an ensemble leaves it to the leader ([member]). A request's way is the same for both:
// submit has it prepared, and committed when its time has come; publish applies it and has it answered. All methods are called
// with the lock held.
type order interface {
	// begin starts the session that a client has asked for on a connection, and submits the request.
	begin(c *conn, r *request)
	// revalidate moves an old session to a connection, if it still lives, and answers the request.
	revalidate(c *conn, r *request, q wire.ConnectRequest)
	// hear notes that the client of a connection has been heard. It reports false if the session is known to be gone.
	hear(c *conn) bool
	// submit takes a request into the history.
	submit(r *request)
	// publish commits a request whose turn it is.
	publish(r *request)
	// first reports whether a transaction that is being applied was not applied anywhere before.
	first(zxid int64) bool

	leads() bool      // does the server order transactions
	commits() bool    // can what it orders be committed
	serves() bool     // does it serve clients
	inContact() bool  // does what its clients send reach who decides about their sessions
	orderer() *Server // who can order a transaction now; nil if nobody can
	views() []*Server // all servers of the history
	standing() standing
	apart() []string // in words, what a test has put between the server and the others

	// What follows is called when the server has been stopped or closed, started again, frozen and thawed.
	halted()
	restarted(keep bool)
	froze()
	thawed()
}

// standing is what a server says about its place among others.
type standing struct {
	index     int // in the ensemble, from 0
	number    int // the same, from 1; 0 on its own
	mode      string
	peer      string // the mode, as mntr calls a member's; empty on its own
	members   int
	followers int // with which a leader is in contact
}
