package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// request is one call on its way through the server. Guarded by Server.mu once submitted.
type request struct {
	call     wire.Call
	session  int64
	xid      int32
	conn     *conn // who waits for the reply; nil for the server's own requests
	ids      []wire.ID
	received time.Time
	internal bool // made by the server or a test: no session and no ACL is checked

	origin  *member // in an ensemble: the member that took it
	waits   bool    // the origin has not got to it in the common history
	reached uint64  // the members that know of the proposal, as bits

	zxid  int64 // of the transaction; 0 for a read
	when  time.Time
	code  wire.Code // as prepared: what the transaction failed with
	txn   []tree.Step
	due   time.Time // when the commit is allowed to happen
	fate  Fate
	late  time.Duration   // by how much the reply is kept back
	mute  bool            // applied, but never answered: the first of a duplicated pair
	reply chan<- *request // tells an internal caller that the request is finished
}

// write reports whether the request has a transaction, even if that only records a failure.
func (r *request) write() bool { return r.zxid != 0 }
