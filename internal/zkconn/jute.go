package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The operations whose frames the tap must understand. Numbers are the ZooKeeper
// protocol's.
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
	opCreateContainer = 19
	opCreateTTL       = 21
	opClose           = -11
	opAuth            = 100
	opSetWatches      = 101
	opError           = -1
)

// Transaction ids with a meaning of their own. Real requests count from 1.
const (
	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4
)

const (
	statSize   = 68
	headerSize = 16 // xid, zxid, error
)

var errShort = errors.New("frame ends in the middle of a field")

// juteReader reads ZooKeeper's serialisation. The first failure sticks, and no
// read allocates: it checks shapes, the client decodes values.
type juteReader struct {
	b   []byte
	err error
}

func (r *juteReader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b) {
		r.err = errShort
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *juteReader) int32() int32 {
	if v := r.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (r *juteReader) int64() int64 {
	if v := r.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (r *juteReader) bool() bool {
	v := r.take(1)
	return v != nil && v[0] != 0
}

// buffer reads a length-prefixed field; -1 is the protocol's null.
func (r *juteReader) buffer() []byte {
	n := r.int32()
	if n == -1 {
		return nil
	}
	return r.take(int(n))
}

// string is a buffer that must not be null: the client's decoder slices by the
// unsigned length.
func (r *juteReader) string() []byte {
	return r.take(int(r.int32()))
}

// count reads the length of a vector whose elements take at least size bytes
// each, so that a hostile count fails before anybody allocates for it.
func (r *juteReader) count(size int) int {
	n := r.int32()
	if n == -1 {
		return 0
	}
	if n < 0 || int64(n)*int64(size) > int64(len(r.b)) {
		r.err = errors.Join(r.err, errShort)
		return 0
	}
	return int(n)
}

// checkReply reports whether body, what follows the header of a successful reply
// to op, can be decoded by the client without a panic or a hostile allocation.
func checkReply(op int32, body []byte) error {
	r := &juteReader{b: body}
	switch op {
	case opCreate, opCreateContainer, opCreateTTL, opSync:
		r.string()
	case opExists, opSetData, opSetACL:
		r.take(statSize)
	case opGetData, opReconfig:
		r.buffer()
		r.take(statSize)
	case opGetACL:
		for range r.count(12) {
			r.int32()
			r.string()
			r.string()
		}
		r.take(statSize)
	case opGetChildren, opGetChildren2:
		for range r.count(4) {
			r.string()
		}
		if op == opGetChildren2 {
			r.take(statSize)
		}
	case opMulti:
		checkMulti(r)
	}
	if r.err != nil {
		return fmt.Errorf("malformed reply to operation %d: %w", op, r.err)
	}
	return nil
}

func checkMulti(r *juteReader) {
	for r.err == nil {
		kind, done := r.int32(), r.bool()
		r.int32()
		if done {
			return
		}
		switch kind {
		case opCreate:
			r.string()
		case opSetData:
			r.take(statSize)
		case opError:
			r.int32()
		case opDelete, opCheck:
		default:
			r.err = errors.Join(r.err, fmt.Errorf("unknown result type %d in a transaction", kind))
		}
	}
}

// appendFrame appends the length prefix and body.
func appendFrame(dst, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	return append(dst, body...)
}

func appendBuffer(dst, v []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}

// requestHeader is the body of a request that has no fields.
func requestHeader(xid, op int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	return binary.BigEndian.AppendUint32(b, uint32(op))
}

func authRequest(a Auth) []byte {
	b := requestHeader(xidAuth, opAuth)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = appendBuffer(b, []byte(a.Scheme))
	return appendBuffer(b, a.Cred)
}

func connectRequest(timeout int32, id int64, passwd []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0)    // last zxid seen: none, so any server will do
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	return appendBuffer(b, passwd)
}

// connectReply is the server's half of the handshake.
type connectReply struct {
	timeout int32 // milliseconds
	id      int64 // 0: the session asked for is gone
	passwd  []byte
}

// maxConnectReply is far above the 37 or 41 bytes that servers send.
const maxConnectReply = 1024

func parseConnectReply(body []byte) (connectReply, error) {
	r := &juteReader{b: body}
	r.int32() // protocol version
	c := connectReply{timeout: r.int32(), id: r.int64()}
	c.passwd = append([]byte(nil), r.buffer()...)
	if r.err != nil {
		return c, fmt.Errorf("malformed connect reply: %w", r.err)
	}
	if c.id != 0 && c.timeout <= 0 {
		return c, fmt.Errorf("malformed connect reply: session timeout of %d ms", c.timeout)
	}
	return c, nil
}
