package zkserver

import (
	"encoding/binary"
	"errors"
)

// errMalformed is what the decoder reports for every record that the frame does
// not hold completely; the server answers it with [CodeMarshalling].
var errMalformed = errors.New("zkserver: malformed record")

// decoder reads jute records from one frame. It never reads past the frame and
// never allocates more than the frame holds; after the first error every
// read returns a zero value and err stays set.
type decoder struct {
	b    []byte
	err  error
	lax  bool // string lets a null string pass
	null bool // a null string was seen where it is let pass
}

func (d *decoder) fail() {
	d.b = nil
	d.err = errMalformed
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) int32() int32 {
	p := d.take(4)
	if p == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p))
}

func (d *decoder) int64() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

func (d *decoder) bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

// buffer returns a copy of a byte buffer; length -1 stands for nil, as in the
// real protocol, where a node's data can be null.
func (d *decoder) buffer() []byte {
	n := d.int32()
	if d.err != nil || n == -1 {
		return nil
	}
	p := d.take(int(n))
	if d.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(p)), p...)
}

// text returns a string, and whether it was a null one.
func (d *decoder) text() (s string, null bool) {
	n := d.int32()
	if d.err != nil {
		return "", false
	}
	if n == -1 {
		return "", true
	}
	return text(d.take(int(n))), false
}

// string returns a string. A null string is an error, unless the decoder is lax: the real server
// dereferences it and answers with a marshalling error.
func (d *decoder) string() string {
	s, null := d.text()
	if null && !d.lax {
		d.fail()
	}
	d.null = d.null || null
	return s
}

// nullable returns a string, and "" for a null one: some operations of the real server
// judge a null path instead of stumbling over it.
func (d *decoder) nullable() string {
	s, null := d.text()
	d.null = d.null || null
	return s
}

// count reads the length of a vector whose elements take at least size bytes each, so
// that a lying length cannot make the caller allocate. A negative length means no elements.
func (d *decoder) count(size int) int {
	n := max(0, int(d.int32()))
	if n > len(d.b)/size {
		d.fail()
		return 0
	}
	return n
}

// strings returns a vector of strings; a null vector is an error, as a null string is.
func (d *decoder) strings() []string {
	if len(d.b) >= 4 && int32(binary.BigEndian.Uint32(d.b)) == -1 {
		d.fail()
		return nil
	}
	n := d.count(4)
	if n == 0 {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, d.string())
	}
	return out
}

func (d *decoder) acl() []ACL {
	n := d.count(12)
	if n == 0 {
		return nil
	}
	out := make([]ACL, 0, n)
	for range n {
		a := ACL{Perms: d.int32()}
		for _, s := range []*string{&a.ID.Scheme, &a.ID.Name} {
			var null bool
			if *s, null = d.text(); null {
				*s = nullName
			}
		}
		out = append(out, a)
	}
	return out
}

// encoder appends jute records to a frame.
type encoder struct {
	b []byte
}

// newFrame starts a frame: four bytes are kept free for its length.
func newFrame(size int) *encoder {
	return &encoder{b: make([]byte, 4, 4+size)}
}

// frame fills in the length and returns the finished frame.
func (e *encoder) frame() []byte {
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4))
	return e.b
}

func (e *encoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
		return
	}
	e.b = append(e.b, 0)
}

func (e *encoder) buffer(v []byte) {
	if v == nil {
		e.int32(-1)
		return
	}
	e.int32(int32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) string(v string) {
	start := len(e.b)
	e.b = appendText(append(e.b, 0, 0, 0, 0), v)
	binary.BigEndian.PutUint32(e.b[start:], uint32(len(e.b)-start-4))
}

func (e *encoder) strings(v []string) {
	e.int32(int32(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

func (e *encoder) acl(v []ACL) {
	e.int32(int32(len(v)))
	for _, a := range v {
		e.int32(a.Perms)
		e.string(a.ID.Scheme)
		e.string(a.ID.Name)
	}
}

func (e *encoder) stat(s Stat) {
	e.int64(s.Czxid)
	e.int64(s.Mzxid)
	e.int64(s.Ctime)
	e.int64(s.Mtime)
	e.int32(s.Version)
	e.int32(s.Cversion)
	e.int32(s.Aversion)
	e.int64(s.EphemeralOwner)
	e.int32(s.DataLength)
	e.int32(s.NumChildren)
	e.int64(s.Pzxid)
}
