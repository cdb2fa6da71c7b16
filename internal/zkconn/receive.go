package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/jute"
)

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		if err := w.next(); err != nil {
			w.fail(err)
			return 0, err
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// next reads one frame, checks it, and handles it. Unless the frame answers
// a request of our own, next makes it available to the client library.
func (w *wire) next() error {
	open := w.state(func() bool { return w.open })
	if cap(w.buf) > keepBuffer {
		w.buf = nil // a long listing must not be kept until something else comes, which may take long
	}
	var prefix [4]byte
	if _, err := io.ReadFull(w.in, prefix[:]); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(prefix[:]))
	limit, least := maxFrame, headerSize
	switch {
	case !open:
		limit, least = maxConnectReply, 0
	case n > maxFrame && n <= math.MaxInt32:
		op, own := w.answers()
		lists := op == opGetChildren || op == opGetChildren2
		switch {
		case n <= maxListing && (lists || op == opGetData && !own):
			limit = maxListing
		case own && (lists || op == opGetData || op == opMultiRead):
			return w.skip(n)
		}
	}
	if !open && n > int64(limit) {
		more, _ := w.in.Peek(w.in.Buffered())
		return notZooKeeper(append(prefix[:], more...))
	}
	if n < int64(least) || n > int64(limit) {
		return w.violation(fmt.Errorf("a frame of %d bytes (at most %d are taken)", int32(n), limit))
	}
	w.buf = append(w.buf[:0], prefix[:]...)
	if err := w.fill(n); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = fmt.Errorf("connection cut in the middle of a frame: %w", io.ErrUnexpectedEOF)
		}
		return err
	}
	if !open {
		return w.greeted(w.buf[4:])
	}
	return w.received(w.buf[4:])
}

// fill appends n bytes to the buffer, which grows as they come. So a
// length that is only promised costs no more memory than maxFrame.
func (w *wire) fill(n int64) error {
	for n > 0 {
		have, more := len(w.buf), min(n, maxFrame)
		w.buf = slices.Grow(w.buf, int(more))[:have+int(more)]
		if _, err := io.ReadFull(w.in, w.buf[have:]); err != nil {
			return err
		}
		n -= more
	}
	return nil
}

// answers is the operation that the next frame is the answer to, 0 for none, and whether the request is one of our own.
func (w *wire) answers() (op int32, own bool) {
	head, err := w.in.Peek(4)
	if err != nil {
		return 0, false // the read that follows meets the same error
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.sent[int32(binary.BigEndian.Uint32(head))]; r != nil {
		return r.op, r.end != nil
	}
	return 0, false
}

// skip reads past a frame of n bytes that is too long. It is the answer to a read of what servers with a greater
// jute.maxbuffer store, or to a listing, which servers do not bound at all. It is no breach of the protocol: only that read fails.
func (w *wire) skip(n int64) error {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(w.in, header); err != nil {
		return err
	}
	if _, err := w.in.Discard(int(n) - headerSize); err != nil {
		return err
	}
	r := jute.Decode(header)
	xid, zxid := r.Int32(), r.Int64()
	w.session.see(zxid)
	return w.replied(answerFrame{xid, zxid, codeTooLong, nil, prefixLength + int(n)})
}

// pass makes the frame available to the client library. It is called in the goroutine of the
// library that receives: of all that is read after the handshake, this is the only one.
func (w *wire) pass() {
	receiveAll(w.session.conn)
	w.rest = w.buf
}

// greeted handles the connect reply.
func (w *wire) greeted(body []byte) error {
	reply, err := parseConnectReply(body)
	if err != nil {
		return w.violation(err)
	}
	if reply.id != 0 {
		if err := w.authenticate(reply); err != nil {
			return err
		}
	}
	_ = w.raw.SetDeadline(time.Time{})
	w.mu.Lock()
	w.open = true
	sent := w.greeting
	w.mu.Unlock()
	if reply.id != 0 {
		w.session.unseen.catchUp(w) // before anybody else can send here
	}
	if err := w.owner.greeted(w, reply, sent); err != nil {
		return err
	}
	w.meet()
	w.session.sendBuffer.owned(w.session.conn, true)
	w.rest = w.buf
	return nil
}

// authenticate sends the credentials and waits for the answers: a session for which they are
// refused is of no use. It is part of the handshake, so nothing else is on the wire. The client
// library never sends credentials again by itself (its way of doing so can hang it for ever).
func (w *wire) authenticate(hello connectReply) error {
	auth := w.session.cfg.Auth
	_ = w.raw.SetDeadline(time.Now().Add(w.limit)) // a step of its own; fails on a closed connection, as the write will
	for _, a := range auth {
		frame := jute.AppendFrame(nil, authRequest(a))
		w.noteAuth(frame)
		if _, err := w.put(frame); err != nil {
			return err
		}
	}
	for _, a := range auth {
		body, err := readFrame(w.in, maxConnectReply)
		if err != nil {
			return err
		}
		r := jute.Decode(body)
		xid, _, code := r.Int32(), r.Int64(), r.Int32()
		if r.Err() != nil || xid != xidAuth {
			return w.violation(errors.New("credentials were not answered"))
		}
		w.authAnswered(prefixLength+len(body), code)
		if code != 0 {
			err := errs.Kind(fmt.Sprintf("the servers refuse the credentials: the servers do not know the scheme %q, or refuse what was presented for it", a.Scheme), ErrAuth)
			w.owner.refused(w, hello, err)
			return err
		}
	}
	return nil
}

// received handles any frame after the handshake, unless the connection was given
// up: what it still says must not be mistaken for what the next connection says.
func (w *wire) received(body []byte) error {
	if w.ending() {
		return net.ErrClosed
	}
	r := jute.Decode(body)
	xid, zxid, code := r.Int32(), r.Int64(), r.Int32()
	w.session.see(zxid)
	if xid != xidEvent {
		w.session.unseen.answer(w, zxid)
	}
	switch {
	case code == codeAuthDemanded && xid != xidEvent:
		return w.demanded()
	case xid == xidEvent:
		kind, _, path := r.Int32(), r.Int32(), r.Text()
		if r.Err() != nil {
			return w.violation(fmt.Errorf("malformed watch event: %w", r.Err()))
		}
		w.session.unseen.event(w, zxid) // before it is reported: whoever hears of it may act on it
		// The event is reported in this goroutine, before anything that follows on the wire is looked
		// at: the queue relies on hearing of departures in the order of the server's history.
		w.session.hub.event(kind, string(path))
	case xid == xidPing:
		w.ponged(prefixLength + len(body))
		if err := w.overdue(); err != nil {
			return err
		}
	case xid == xidAuth && w.session.identity.answered(&w.identity, code):
		w.authAnswered(prefixLength+len(body), code)
		return nil // the client library did not ask for this
	default:
		return w.replied(answerFrame{xid, zxid, code, r.Rest(), prefixLength + len(body)})
	}
	w.pass()
	return nil
}

// demanded is called when a server demands that the client authenticate. It has made the session, but grants it
// no request, not even its end. So nothing was ever made in it, and other sessions would fare no better.
func (w *wire) demanded() error {
	err := fmt.Errorf("%w: %s demands that clients authenticate (its enforce.auth.schemes or sessionRequireClientSASLAuth): "+
		"use WithAuth with a scheme that it asks for; SASL is not supported", ErrAuth, w.addr)
	w.session.vanish()
	w.owner.refused(w, connectReply{}, err)
	return err
}

// ponged counts an answer as that to the oldest ping. If
// an answer was lost, this proves less, and nothing wrong.
func (w *wire) ponged(received int) {
	w.mu.Lock()
	var sent time.Time
	if len(w.pings) > 0 {
		sent, w.pings = w.pings[0], w.pings[1:]
	}
	w.mu.Unlock()
	if !sent.IsZero() {
		w.session.answered(sent, false)
		w.report(ofPing(sent), received, 0, nil)
	}
}

// answerFrame is the frame that answers a request.
type answerFrame struct {
	xid   int32
	zxid  int64
	code  int32
	body  []byte // behind the header
	bytes int    // of the whole frame
}

// replied handles the answer to a request. An answer to the client library's own request is passed on to it.
func (w *wire) replied(a answerFrame) error {
	code, body := a.code, a.body
	r, err := w.takeOut(a.xid)
	if r == nil {
		return err
	}
	if err == nil && stored(r.op, code) {
		err = w.owner.stored(a.zxid)
	}
	if err == nil && code == 0 {
		if err = checkReply(r.op, body); err != nil {
			err = w.violation(err)
		}
	}
	if err != nil {
		unknown := &unknownError{err}
		w.report(r, a.bytes, 0, unknown)
		r.answer(nil, unknown)
		return err
	}
	s := w.session
	if r.end != nil {
		s.most.answered(r.size)
	}
	if r.op == opMulti && expiredIn(body) {
		code = codeSessionExpired
	}
	s.unknown.answered(r.op, code)
	// The clock gets the answer before the caller, which may at once ask for what this answer proves.
	if r.op != opAuth { // servers do not count credentials as a sign of life
		s.answered(r.at, led(r.op, code))
	}
	if code == codeSessionExpired {
		w.owner.expired(w)
	}
	if r.op == opClose {
		s.vanish()
	}
	w.answered(r, a.bytes, code, body)
	switch {
	case r.end == nil:
		w.pass()
	case code == 0:
		r.end(body, nil)
	case code == codeSessionExpired:
		r.end(nil, ErrOver)
	default:
		r.end(nil, classify(codeError(code)))
	}
	if r.beat {
		return w.overdue()
	}
	return nil
}
