package zkconn

import (
	"errors"
	"time"
)

// Exchange is a request that has ended: with its answer, or with the connection.
type Exchange struct {
	Op             string
	Duration       time.Duration // since it was sent
	Code           int           // of the answer; of a transaction that was not applied, that of the operation that failed
	Err            error         // nil for success
	Sent, Received int           // bytes, all of a frame; Received is 0 without an answer
}

// opNames are the names of the operations in an Exchange. Variants of an operation have one name.
var opNames = map[int32]string{
	opCreate: "create", opCreate2: "create", opCreateContainer: "create", opCreateTTL: "create",
	opDelete: "delete", opExists: "exists", opGetData: "get_data", opSetData: "set_data", opGetACL: "get_acl", opSetACL: "set_acl",
	opGetChildren: "get_children", opGetChildren2: "get_children", opSync: "sync", opPing: "ping", opCheck: "check", opMulti: "multi",
	opMultiRead: "multi_read",
	opReconfig:  "reconfig", opRemoveWatches: "remove_watches", opSetWatches: "set_watches", opAddWatch: "add_watch",
	opAuth: "auth", opClose: "close_session",
}

func opName(op int32) string {
	if name, ok := opNames[op]; ok {
		return name
	}
	return "other"
}

// answered reports a request that was answered. body is what follows the header of the answer, received all its bytes.
func (w *wire) answered(r *sentRequest, received int, code int32, body []byte) {
	if w.session.cfg.OnRequest == nil {
		return
	}
	var err error
	var refused *TxnError
	switch {
	case code == codeTooLong: // of no server
		code, err = 0, ErrTooLong
	case code == codeSessionExpired:
		err = ErrOver
	case code != 0:
		err = classify(codeError(code))
	case r.op == opMulti:
		if _, e := decodeMulti(body, 0); errors.As(e, &refused) {
			code, err = codeOf(refused.Err), e
		}
	}
	w.report(r, received, code, err)
}

// report reports a request that has ended, with err unless it has succeeded. No lock is held.
func (w *wire) report(r *sentRequest, received int, code int32, err error) {
	if f := w.session.cfg.OnRequest; f != nil {
		f(Exchange{opName(r.op), time.Since(r.at), int(code), err, r.size, received})
	}
}

// ofPing is a ping that was sent at this time, as a request.
func ofPing(at time.Time) *sentRequest { return &sentRequest{op: opPing, at: at, size: prefixSize} }

// noteAuth notes credentials of our own that are about to be sent. Their answers, which come in order, have no xid of their own.
func (w *wire) noteAuth(frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.auths = append(w.auths, &sentRequest{op: opAuth, at: time.Now(), size: len(frame)})
	}
}

// authAnswered reports the oldest of them, which was answered.
func (w *wire) authAnswered(received int, code int32) {
	w.mu.Lock()
	if len(w.auths) == 0 {
		w.mu.Unlock()
		return
	}
	r := w.auths[0]
	w.auths = w.auths[1:]
	w.mu.Unlock()
	w.answered(r, received, code, nil)
}
