package zkconn

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// The operations whose frames the wire must understand. The numbers are those of the ZooKeeper protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opGetChildren     = 8
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opRemoveWatches   = 18
	opCreateContainer = 19
	opCreateTTL       = 21
	opMultiRead       = 22
	opClose           = -11
	opAuth            = 100
	opSetWatches      = 101
	opAddWatch        = 106
	opError           = -1
)

// Request ids (xids) with a meaning of their own. Those of the client library's requests count from 1; ours begin after firstOwn.
const (
	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4
)

const (
	headerSize   = 16 // of an answer: xid, zxid, error
	prefixLength = 4  // of a frame: its length, which counts what follows
	prefixSize   = 12 // of a request: what comes before its body, that is length, xid and operation
)

// led reports whether only the leader can have given the answer to a request:
// it orders all writes, also those that it refuses, and answers syncs.
func led(op, code int32) bool {
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL, opSync, opMulti:
	default:
		return false
	}
	switch code {
	case 0, codeNoNode, codeNoAuth, codeBadVersion, codeNoChildren, codeNodeExists, codeNotEmpty:
		return true
	}
	return false
}

// stored reports whether an answer comes from a transaction that a quorum has stored. A
// sync is none, and servers may refuse access by what they know themselves.
func stored(op, code int32) bool { return op != opSync && code != codeNoAuth && led(op, code) }

// requestHeader is the body of a request that has no fields.
func requestHeader(xid, op int32) []byte { return jute.AppendInt32(jute.AppendInt32(nil, xid), op) }

func authRequest(a Auth) []byte {
	b := jute.AppendInt32(requestHeader(xidAuth, opAuth), 0) // no server looks at the type
	return jute.AppendText(jute.AppendText(b, a.Scheme), a.Cred)
}

// connectRequest is the client's part of the handshake, without
// the length of the frame. It asks to resume the session id.
func connectRequest(timeout int32, id int64, passwd []byte) []byte {
	b := jute.AppendInt32(nil, 0)                         // protocol version
	b = jute.AppendInt32(jute.AppendInt64(b, 0), timeout) // last zxid seen: none, so any server will do
	return jute.AppendText(jute.AppendInt64(b, id), passwd)
}

// connectReply is the server's part of the handshake.
type connectReply struct {
	timeout int32 // milliseconds
	id      int64 // 0 means that the session asked for has ended
	passwd  []byte
}

// maxConnectReply is far above the 37 or 41 bytes that servers send.
const maxConnectReply = 1024

func parseConnectReply(body []byte) (connectReply, error) {
	r := jute.Decode(body)
	r.Int32() // protocol version
	c := connectReply{timeout: r.Int32(), id: r.Int64()}
	c.passwd = append([]byte(nil), r.Buffer()...)
	if r.Err() != nil {
		return c, fmt.Errorf("malformed connect reply: %w", r.Err())
	}
	if c.id != 0 && c.timeout <= 0 {
		return c, fmt.Errorf("malformed connect reply: session timeout of %d ms", c.timeout)
	}
	return c, nil
}

// readFrame reads one frame and returns its body. It refuses
// a longer one than limit before it allocates for it.
func readFrame(r io.Reader, limit uint32) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > limit {
		return nil, fmt.Errorf("a frame of %d bytes (at most %d are taken)", n, limit)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
