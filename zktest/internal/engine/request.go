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

// record describes the request in its present state.
func (r *request) record() Request {
	q := Request{
		Time: r.received, Session: r.session, Xid: r.xid, Op: r.call.Op,
		Paths: r.call.Paths(), Zxid: r.zxid, Code: r.code, Fate: r.fate,
	}
	if len(q.Paths) > 0 {
		q.Path = q.Paths[0]
	}
	if r.call.Op == wire.OpConnect && r.conn != nil {
		q.Timeout, q.Resumed = r.conn.timeout, r.call.Connect.Session != 0
	}
	for i := range r.call.Subs {
		q.Ops = append(q.Ops, r.call.Subs[i].Op)
	}
	for i := range r.txn {
		op := &r.txn[i]
		if q.Code == wire.CodeOK {
			q.Code = op.Code
		}
		if q.Created == "" && op.Creates() {
			q.Created = op.Path
		}
	}
	return q
}
