// Package jute reads and writes the fields of ZooKeeper's wire format: numbers, flags, buffers, strings, vectors and
// the status of a node, one after the other, without tags. The client ([internal/zkconn]) and the server
// ([zktest/internal/engine]) share it. The tests of conformance have a codec of their own, so that a mistake here is not
// made on both sides.
//
// A frame is a length and a body of so many bytes. What a body holds depends on the operation, and is the users' business.
package jute

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is what a [Decoder] reports for every field that the body does not hold completely.
var ErrMalformed = errors.New("frame ends in the middle of a field")

// Decoder takes fields off the front of a body. It never reads past the body and never allocates: what it returns is
// part of the body. After the first error every read returns a zero value, and Err stays.
type Decoder struct {
	rest []byte
	err  error
}

// Decode returns a decoder of a body.
func Decode(body []byte) *Decoder { return &Decoder{rest: body} }

// Err returns the first error, nil if there was none.
func (d *Decoder) Err() error { return d.err }

// Rest returns the bytes that are not read yet; nothing after an error.
func (d *Decoder) Rest() []byte { return d.rest }

// Fail makes the decoder report err, unless it has failed before.
func (d *Decoder) Fail(err error) {
	d.rest = nil
	if d.err == nil {
		d.err = err
	}
}

// Take returns the next n bytes.
func (d *Decoder) Take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > len(d.rest) {
		d.Fail(ErrMalformed)
		return nil
	}
	p := d.rest[:n:n]
	d.rest = d.rest[n:]
	return p
}

// Int32 returns a number of four bytes.
func (d *Decoder) Int32() int32 {
	if p := d.Take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

// Int64 returns a number of eight bytes.
func (d *Decoder) Int64() int64 {
	if p := d.Take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// Bool returns a flag of one byte.
func (d *Decoder) Bool() bool {
	p := d.Take(1)
	return p != nil && p[0] != 0
}

// Buffer returns a buffer, whose length is in front of it. It is nil for the length -1, which is how a null one is sent: strings
// and the data of nodes can be null.
func (d *Decoder) Buffer() []byte {
	n := d.Int32()
	if n == -1 {
		return nil
	}
	return d.Take(int(n))
}

// Text returns a buffer that must not be null.
func (d *Decoder) Text() []byte { return d.Take(int(d.Int32())) }

// Count returns the length of a vector whose elements take at least size bytes each, so that a lying length fails
// before a caller allocates for it. A negative length is returned as it is: -1 stands for a null vector.
func (d *Decoder) Count(size int) int {
	n := int(d.Int32())
	if n > len(d.rest)/size {
		d.Fail(ErrMalformed)
		return 0
	}
	return n
}

// Stat is the status of a node, field by field.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64 // milliseconds since the Unix epoch
	Mtime          int64 // milliseconds since the Unix epoch
	Version        int32
	Cversion       int32 // creates and deletes of children, as clients see it
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// StatSize is the number of bytes that a [Stat] takes.
const StatSize = 68

// Stat returns the status of a node.
func (d *Decoder) Stat() Stat {
	return Stat{
		Czxid: d.Int64(), Mzxid: d.Int64(), Ctime: d.Int64(), Mtime: d.Int64(),
		Version: d.Int32(), Cversion: d.Int32(), Aversion: d.Int32(),
		EphemeralOwner: d.Int64(), DataLength: d.Int32(), NumChildren: d.Int32(), Pzxid: d.Int64(),
	}
}
