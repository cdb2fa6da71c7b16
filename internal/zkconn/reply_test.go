package zkconn

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// bodies are well-formed bodies of successful replies.
func bodies() map[int32][][]byte {
	stat := make([]byte, jute.StatSize)
	name := jute.AppendText(nil, "/a/b")
	multi := jute.AppendText(appendOpHeader(nil, opCreate, 0), "/a/b-0000000001")
	multi = append(appendOpHeader(multi, opSetData, 0), stat...)
	multi = appendOpHeader(multi, opDelete, 0)
	multi = appendOpHeader(multi, opCheck, 0)
	multi = appendOpHeader(multi, -1, 1)
	refused := jute.AppendInt32(appendOpHeader(nil, opError, 0), 0)
	refused = jute.AppendInt32(appendOpHeader(refused, opError, 0), -101)
	refused = appendOpHeader(refused, -1, 1)
	several := append(jute.AppendText(appendOpHeader(nil, opGetData, 0), []byte("data")), stat...)
	several = jute.AppendInt32(appendOpHeader(several, opError, 0), -101)
	several = appendOpHeader(several, -1, 1)
	names := jute.AppendText(jute.AppendText(jute.AppendInt32(nil, 2), "a"), "bc")
	acl := appendACL(nil, nil)
	return map[int32][][]byte{
		opCreate: {name}, opCreateContainer: {name}, opCreateTTL: {name}, opSync: {name},
		opExists: {stat}, opSetData: {stat}, opSetACL: {stat},
		opGetData:      {append(jute.AppendText(nil, []byte("data")), stat...), append(jute.AppendInt32(nil, -1), stat...)},
		opReconfig:     {append(jute.AppendText(nil, ""), stat...)},
		opGetACL:       {append(acl, stat...)},
		opGetChildren:  {names, jute.AppendInt32(nil, 0)},
		opGetChildren2: {append(names, stat...)},
		opMulti:        {multi, refused},
		opMultiRead:    {several, appendOpHeader(nil, -1, 1)},
		opDelete:       {nil}, opSetWatches: {nil},
	}
}

func TestWellFormedRepliesPass(t *testing.T) {
	for op, all := range bodies() {
		for _, b := range all {
			require.NoError(t, checkReply(op, b), "operation %d", op)
		}
	}
}

func TestEveryTruncatedReplyIsRefused(t *testing.T) {
	for op, all := range bodies() {
		for _, b := range all {
			for n := range b {
				require.Error(t, checkReply(op, b[:n]), "operation %d cut to %d of %d bytes", op, n, len(b))
			}
		}
	}
}

func TestLengthsThatCannotBeAreRefused(t *testing.T) {
	for _, hostile := range []int32{-2, -1 << 31, 1<<31 - 1, 1 << 20} {
		length := jute.AppendInt32(nil, hostile)
		r := jute.Decode(append(slices.Clone(length), make([]byte, 96)...))
		require.Zero(t, count(r, 4), "nothing may be allocated for %d elements", hostile)
		require.Error(t, r.Err())
		for _, op := range []int32{opCreate, opGetData, opGetACL, opGetChildren, opGetChildren2} {
			require.Error(t, checkReply(op, append(length, make([]byte, 100)...)), "operation %d, length %d", op, hostile)
		}
		multi := append(appendOpHeader(nil, opCreate, 0), length...)
		require.Error(t, checkReply(opMulti, append(multi, make([]byte, 100)...)))
	}
	require.Error(t, checkReply(opCreate, jute.AppendInt32(nil, -1)), "a name must not be null: the client slices by its length")
	require.Error(t, checkReply(opMulti, appendOpHeader(nil, 77, 0)), "a result of an unknown type")
}

func TestConnectRepliesAreChecked(t *testing.T) {
	good := connectReplyBody(5, 1e9)
	reply, err := parseConnectReply(good)
	require.NoError(t, err)
	require.Equal(t, connectReply{timeout: 1000, id: 5, passwd: make([]byte, 16)}, reply)
	for n := range len(good) - 1 { // old servers leave out the last byte
		_, err := parseConnectReply(good[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	binary.BigEndian.PutUint32(good[4:], 0)
	_, err = parseConnectReply(good)
	require.Error(t, err, "a session with a timeout of 0")
	binary.BigEndian.PutUint32(good[4:], 1<<31)
	_, err = parseConnectReply(good)
	require.Error(t, err, "a session with a negative timeout")
}

// FuzzReply holds what the client's decoders and ours rely on: what checkReply lets
// through is read without going beyond its end, and a listing is no longer than
// its frame.
func FuzzReply(f *testing.F) {
	for op, all := range bodies() {
		for _, b := range all {
			f.Add(op, b)
		}
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		_, _ = parseConnectReply(body)
		ok := checkReply(op, body) == nil
		r := jute.Decode(body)
		switch op {
		case opGetChildren2:
			l, _ := decodeListing(r)
			require.LessOrEqual(t, 4*len(l.Names), len(body))
		case opExists:
			_, _ = decodeStat(r)
		case opMulti:
			res, err := decodeMulti(body, 4)
			if ok && err == nil {
				require.Len(t, res, 4)
			}
			return
		default:
			return
		}
		if ok {
			require.NoError(t, r.Err())
		}
	})
}
