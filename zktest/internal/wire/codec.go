package wire

import (
	"encoding/binary"

	"github.com/go-menagerie/menagerie/internal/jute"
	"github.com/go-menagerie/menagerie/zktest/internal/jvm"
)

// Decoder reads the body of a request as the real server does. What it returns is a copy, and never larger than the
// body; after the first error every read returns a zero value.
type Decoder struct {
	*jute.Decoder
	lax  bool // Text lets a null string pass
	null bool // a null string was seen where it is let pass
}

// NewDecoder returns a decoder of a body.
func NewDecoder(body []byte) *Decoder { return &Decoder{Decoder: jute.Decode(body)} }

func (d *Decoder) fail() { d.Fail(jute.ErrMalformed) }

// Buffer returns a copy of a buffer; nil for a null one, as the data of a node can be.
func (d *Decoder) Buffer() []byte {
	p := d.Decoder.Buffer()
	if p == nil {
		return nil
	}
	return append(make([]byte, 0, len(p)), p...)
}

// maybe returns a string, and whether it was a null one.
func (d *Decoder) maybe() (s string, null bool) {
	p := d.Decoder.Buffer()
	return jvm.Text(p), p == nil && d.Err() == nil
}

// Text returns a string. A null one is an error, unless the decoder is lax: the real server
// dereferences it and answers with a marshalling error.
func (d *Decoder) Text() string {
	s, null := d.maybe()
	if null && !d.lax {
		d.fail()
	}
	d.null = d.null || null
	return s
}

// nullable returns a string, and "" for a null one: some operations of the real server
// judge a null path instead of stumbling over it.
func (d *Decoder) nullable() string {
	s, null := d.maybe()
	d.null = d.null || null
	return s
}

// Texts returns a vector of strings; a null vector is an error, as a null string is.
func (d *Decoder) Texts() []string {
	n := d.Count(4)
	if n == -1 {
		d.fail()
	}
	if n <= 0 {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, d.Text())
	}
	return out
}

// ACL returns an access control list. What a client has left out of it is [NullName].
func (d *Decoder) ACL() []ACL {
	n := d.Count(12)
	if n <= 0 {
		return nil
	}
	out := make([]ACL, 0, n)
	for range n {
		a := ACL{Perms: d.Int32()}
		for _, s := range []*string{&a.ID.Scheme, &a.ID.Name} {
			var null bool
			if *s, null = d.maybe(); null {
				*s = NullName
			}
		}
		out = append(out, a)
	}
	return out
}

// Encoder appends the fields of a reply to a frame.
type Encoder struct {
	B []byte
}

// NewFrame starts a frame: four bytes are kept free for its length.
func NewFrame(size int) *Encoder {
	return &Encoder{B: make([]byte, 4, 4+size)}
}

// Frame fills in the length and returns the finished frame.
func (e *Encoder) Frame() []byte {
	binary.BigEndian.PutUint32(e.B, uint32(len(e.B)-4))
	return e.B
}

// Int32 appends a number.
func (e *Encoder) Int32(v int32) { e.B = jute.AppendInt32(e.B, v) }

// Int64 appends a number.
func (e *Encoder) Int64(v int64) { e.B = jute.AppendInt64(e.B, v) }

// Bool appends a flag.
func (e *Encoder) Bool(v bool) { e.B = jute.AppendBool(e.B, v) }

// Buffer appends a buffer; nil is a null one.
func (e *Encoder) Buffer(v []byte) { e.B = jute.AppendBuffer(e.B, v) }

// Stat appends the status of a node.
func (e *Encoder) Stat(s Stat) { e.B = jute.AppendStat(e.B, s) }

// Text appends a string as the real server writes it.
func (e *Encoder) Text(v string) {
	start := len(e.B)
	e.B = jvm.AppendText(append(e.B, 0, 0, 0, 0), v)
	binary.BigEndian.PutUint32(e.B[start:], uint32(len(e.B)-start-4))
}

// Texts appends a vector of strings.
func (e *Encoder) Texts(v []string) {
	e.Int32(int32(len(v)))
	for _, s := range v {
		e.Text(s)
	}
}

// ACL appends an access control list.
func (e *Encoder) ACL(v []ACL) {
	e.Int32(int32(len(v)))
	for _, a := range v {
		e.Int32(a.Perms)
		e.Text(a.ID.Scheme)
		e.Text(a.ID.Name)
	}
}

// Header appends the header of a reply.
func (e *Encoder) Header(xid int32, zxid int64, code Code) {
	e.Int32(xid)
	e.Int64(zxid)
	e.Int32(int32(code))
}
