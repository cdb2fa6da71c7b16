package conformance

import (
	"encoding/binary"
	"strings"
)

// The wire format is written out here once more, on purpose: a mistake in the encoder of
// zktest/internal/engine must not hide behind itself.

// record is a jute record under construction. base replaces a leading "~" in paths.
type record struct {
	base string
	b    []byte
}

func (r *record) i32(v int32) *record {
	r.b = binary.BigEndian.AppendUint32(r.b, uint32(v))
	return r
}

func (r *record) i64(v int64) *record {
	r.b = binary.BigEndian.AppendUint64(r.b, uint64(v))
	return r
}

func (r *record) boolean(v bool) *record {
	if v {
		return r.raw("\x01")
	}
	return r.raw("\x00")
}

func (r *record) raw(s string) *record {
	r.b = append(r.b, s...)
	return r
}

// buf appends a byte buffer; nil is the null buffer.
func (r *record) buf(v []byte) *record {
	if v == nil {
		return r.i32(-1)
	}
	return r.i32(int32(len(v))).raw(string(v))
}

// null stands for a null string, in every place where a string is asked for.
const null = "\x00null"

func (r *record) str(s string) *record {
	if s == null {
		return r.i32(-1)
	}
	return r.i32(int32(len(s))).raw(s)
}

// path appends a path, with the scenario's node instead of a leading "~".
func (r *record) path(p string) *record { return r.str(expand(p, r.base)) }

func (r *record) paths(ps []string) *record {
	r.i32(int32(len(ps)))
	for _, p := range ps {
		r.path(p)
	}
	return r
}

func (r *record) acl(acl []grant) *record {
	r.i32(int32(len(acl)))
	for _, g := range acl {
		r.i32(g.perms).str(g.scheme).str(g.id)
	}
	return r
}

func expand(p, base string) string {
	if rest, ok := strings.CutPrefix(p, "~"); ok {
		return base + rest
	}
	return p
}

// frame puts the length in front.
func frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...)
}

// reader takes a record apart. It notes that something was missing and goes on with zeros: what the
// peer has sent is shown, whatever it is.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, max(0, min(n, 16)))
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) i32() int32    { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *reader) i64() int64    { return int64(binary.BigEndian.Uint64(r.take(8))) }
func (r *reader) boolean() bool { return r.take(1)[0] != 0 }

// buf returns a buffer, and whether it is not null.
func (r *reader) buf() ([]byte, bool) {
	n := r.i32()
	if n == -1 || r.short {
		return nil, false
	}
	return r.take(int(n)), true
}

func (r *reader) str() string {
	b, ok := r.buf()
	if !ok {
		return null
	}
	return string(b)
}

// count reads the length of a vector, and never more than the frame can hold; -1 is the null vector.
func (r *reader) count() int {
	n := int(r.i32())
	if n > len(r.b) {
		r.short = true
		return 0
	}
	return n
}
