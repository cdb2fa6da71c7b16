package zkconn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Encoding and decoding of our own requests, which do not go through the client library's queue.
// The decoders get only bodies that checkReply has passed, and still never read beyond their end.

func appendACL(dst []byte, acl []zk.ACL) []byte {
	dst = jute.AppendInt32(dst, int32(len(acl)))
	for _, a := range acl {
		dst = jute.AppendInt32(dst, a.Perms)
		dst = jute.AppendText(dst, a.Scheme)
		dst = jute.AppendText(dst, a.ID)
	}
	return dst
}

func appendCreate(dst []byte, r *zk.CreateRequest) []byte {
	dst = jute.AppendText(dst, r.Path)
	dst = jute.AppendBuffer(dst, r.Data)
	dst = appendACL(dst, r.Acl)
	return jute.AppendInt32(dst, r.Flags)
}

func appendDelete(dst []byte, r *zk.DeleteRequest) []byte {
	return jute.AppendInt32(jute.AppendText(dst, r.Path), r.Version)
}

// readRequest is the body of exists, getData and getChildren2.
func readRequest(path string, watch bool) []byte {
	return jute.AppendBool(jute.AppendText(nil, path), watch)
}

func appendOpHeader(dst []byte, op int32, done byte) []byte {
	dst = jute.AppendInt32(dst, op)
	dst = append(dst, done)
	return jute.AppendInt32(dst, -1)
}

// multiBody is the body of a transaction.
func multiBody(ops []any) ([]byte, error) {
	b := make([]byte, 0, 512) // room for the entry of a lock
	for _, op := range ops {
		switch r := op.(type) {
		case *zk.CreateRequest:
			b = appendCreate(appendOpHeader(b, opCreate, 0), r)
		case *zk.DeleteRequest:
			b = appendDelete(appendOpHeader(b, opDelete, 0), r)
		case *zk.SetDataRequest:
			b = jute.AppendText(appendOpHeader(b, opSetData, 0), r.Path)
			b = jute.AppendInt32(jute.AppendBuffer(b, r.Data), r.Version)
		case *zk.CheckVersionRequest:
			b = jute.AppendInt32(jute.AppendText(appendOpHeader(b, opCheck, 0), r.Path), r.Version)
		default:
			return nil, fmt.Errorf("zksync: an operation of type %T in a transaction", op)
		}
	}
	return appendOpHeader(b, -1, 1), nil
}

// results reads the results of a transaction.
func results(r *jute.Decoder) (all []zk.MultiResponse) {
	all = make([]zk.MultiResponse, 0, 2) // most transactions are that short
	for r.Err() == nil {
		kind, done := r.Int32(), r.Bool()
		r.Int32()
		if done {
			break
		}
		var m zk.MultiResponse
		switch kind {
		case opCreate:
			m.String = string(r.Text())
		case opCreate2: // of a container
			m.String, m.Stat = string(r.Text()), stat(r)
		case opSetData:
			m.Stat = stat(r)
		case opError:
			m.Error = codeError(r.Int32())
		case opDelete, opCheck:
		default:
			r.Fail(fmt.Errorf("unknown result type %d in a transaction", kind))
		}
		all = append(all, m)
	}
	return all
}

// decodeMulti reads the answer to a transaction of n operations. If the transaction was
// not applied, the operations before the one that failed have no error in the answer,
// although they were not applied either; those after it have a "runtime inconsistency".
func decodeMulti(body []byte, n int) ([]zk.MultiResponse, error) {
	r := jute.Decode(body)
	res := results(r)
	failed := slices.IndexFunc(res, func(m zk.MultiResponse) bool { return m.Error != nil })
	switch {
	case r.Err() != nil:
		return nil, &unknownError{r.Err()}
	case failed >= 0:
		return nil, classify(&TxnError{Index: failed, Err: res[failed].Error})
	case len(res) != n:
		return nil, &unknownError{fmt.Errorf("%d results for %d operations", len(res), n)}
	}
	return res, nil
}

// expiredIn reports whether a transaction was refused because the session is gone. Servers then
// answer with success, as to every other transaction, and say so in the result of an operation.
func expiredIn(body []byte) bool {
	if jute.Decode(body).Int32() != opError {
		return false // it was applied: all results of one that was not are errors
	}
	_, err := decodeMulti(body, 0)
	return errors.Is(err, zk.ErrSessionExpired)
}

// contents reads the answer to a request for the data of several nodes. Of one that is not there the Stat is nil. err is the
// first other refusal.
func contents(r *jute.Decoder) (all []Content, err error) {
	for r.Err() == nil {
		kind, done := r.Int32(), r.Bool()
		r.Int32()
		if done {
			break
		}
		var c Content
		switch kind {
		case opGetData:
			c, _ = decodeContent(r)
		case opError:
			if code := r.Int32(); code != codeNoNode && err == nil {
				err = classify(codeError(code))
			}
		default:
			r.Fail(fmt.Errorf("unknown result type %d of several reads", kind))
		}
		all = append(all, c)
	}
	return all, err
}

func stat(r *jute.Decoder) *zk.Stat {
	st := zk.Stat(r.Stat())
	return &st
}

func texts(r *jute.Decoder) []string {
	n := count(r, 4)
	all := make([]string, 0, n)
	for range n {
		all = append(all, string(r.Text()))
	}
	return all
}

// count reads the length of a vector. A negative one is an error, except for a
// null vector: the client library would take it for a huge one and allocate for it.
func count(r *jute.Decoder, size int) int {
	n := r.Count(size)
	if n < -1 {
		r.Fail(jute.ErrMalformed)
	}
	return max(0, n)
}

// checkReply reports whether the client library can decode body without a panic or a
// hostile allocation. body is what follows the header of a successful reply to op.
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
	case opMultiRead:
		contents(r)
	}
	if r.Err() != nil {
		return fmt.Errorf("malformed reply to operation %d: %w", op, r.Err())
	}
	return nil
}
