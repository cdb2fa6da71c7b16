package zkconn

import (
	"fmt"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// The operations whose frames the wire must understand. Numbers are the ZooKeeper
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

const headerSize = 16 // xid, zxid, error

// count reads the length of a vector. The client takes a negative one, other than that of a null vector, for a
// huge one, and would allocate for it.
func count(r *jute.Decoder, size int) int {
	n := r.Count(size)
	if n < -1 {
		r.Fail(jute.ErrMalformed)
	}
	return max(0, n)
}

// checkReply reports whether body, what follows the header of a successful reply
// to op, can be decoded by the client without a panic or a hostile allocation.
func checkReply(op int32, body []byte) error {
	r := jute.Decode(body)
	switch op {
	case opCreate, opCreateContainer, opCreateTTL, opSync:
		r.Text()
	case opExists, opSetData, opSetACL:
		r.Take(jute.StatSize)
	case opGetData, opReconfig:
		r.Buffer()
		r.Take(jute.StatSize)
	case opGetACL:
		for range count(r, 12) {
			r.Int32()
			r.Text()
			r.Text()
		}
		r.Take(jute.StatSize)
	case opGetChildren, opGetChildren2:
		for range count(r, 4) {
			r.Text()
		}
		if op == opGetChildren2 {
			r.Take(jute.StatSize)
		}
	case opMulti:
		results(r)
	}
	if r.Err() != nil {
		return fmt.Errorf("malformed reply to operation %d: %w", op, r.Err())
	}
	return nil
}

// requestHeader is the body of a request that has no fields.
func requestHeader(xid, op int32) []byte { return jute.AppendInt32(jute.AppendInt32(nil, xid), op) }

func authRequest(a Auth) []byte {
	b := jute.AppendInt32(requestHeader(xidAuth, opAuth), 0) // no server looks at the type
	return jute.AppendText(jute.AppendText(b, a.Scheme), a.Cred)
}

func connectRequest(timeout int32, id int64, passwd []byte) []byte {
	b := jute.AppendInt32(nil, 0)                         // protocol version
	b = jute.AppendInt32(jute.AppendInt64(b, 0), timeout) // last zxid seen: none, so any server will do
	return jute.AppendText(jute.AppendInt64(b, id), passwd)
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
