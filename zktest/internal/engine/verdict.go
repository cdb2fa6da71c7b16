package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Fate is what an interceptor does to a request.
type Fate int

const (
	// FateNormal lets the request run.
	FateNormal Fate = iota
	// FateRequestLost drops the connection; the request is not applied.
	FateRequestLost
	// FateReplyLost applies the request and drops the connection instead of replying.
	FateReplyLost
	// FateDuplicate applies the request twice; only the last reply is sent. What cannot happen twice, such as a
	// connect, runs once.
	FateDuplicate
	// FateFailed answers with [Verdict.Code]; the request is not applied.
	FateFailed
	// FateDropped is what becomes of a held request whose client has come back on another connection. It is no
	// verdict.
	FateDropped
	// FateEventLost is for watch events: the client is not told, and its watch is gone all the same.
	FateEventLost
)

var fateNames = [...]string{"", "request lost", "reply lost", "duplicate", "failed by rule", "dropped: its client has a new connection", "event lost"}

// String returns a short description for logs; nothing for FateNormal.
func (f Fate) String() string { return fateNames[f] }

// Verdict is an interceptor's decision about one request. The zero value lets it run.
type Verdict struct {
	Fate Fate
	Code wire.Code // with FateFailed
	// Hold parks the request before it meets its fate, and those behind it on its connection, until Release is closed or
	// Delay is over. Heartbeats pass it.
	Hold    bool
	Delay   time.Duration   // with Hold: release after this time; 0 never
	Release <-chan struct{} // with Hold: release when closed; may be nil
	// ReplyDelay keeps the reply back, and what follows it on the connection.
	ReplyDelay time.Duration
	// Queued makes a held request one that the server has read: see Server.supersede.
	Queued bool
	// OnDrop is called, with the server locked, when a held request is dropped instead.
	OnDrop func()
}

// Acts reports whether the verdict does anything to a request.
func (v Verdict) Acts() bool { return v.Fate != FateNormal || v.Hold || v.ReplyDelay > 0 }

// fateOf returns what a verdict makes of a request, now or on release, and with which code it fails.
func (v Verdict) fateOf(op wire.Op) (Fate, wire.Code) {
	switch {
	case v.Fate == FateFailed:
		return FateFailed, v.Code
	case v.Fate == FateDuplicate && !repeatable(op):
		return FateNormal, wire.CodeOK
	}
	return v.Fate, wire.CodeOK
}

// repeatable reports whether an operation can happen twice: not if it concerns the connection itself.
func repeatable(op wire.Op) bool {
	return op.Known() && op != wire.OpConnect && op != wire.OpCreateSession && op != wire.OpAuth && op != wire.OpSASL
}

// Request describes a request to interceptors and, once it is finished, to
// [Config.OnRequest].
type Request struct {
	Time    time.Time // when the server received it
	Session int64
	Xid     int32
	Op      wire.Op
	Path    string    // as the client sent it; of a multi the first part's
	Paths   []string  // all paths; more than one only for a multi
	Ops     []wire.Op // of a multi: the operations of its parts
	Zxid    int64     // of the transaction; 0 for reads and before the request has run
	Code    wire.Code // the result; of a multi the first failure
	Created string    // the name of the node that a create made, with its sequence number
	Fate    Fate
	// Of a connect that was granted: the timeout, and whether the session is an old one.
	Timeout time.Duration
	Resumed bool
}
