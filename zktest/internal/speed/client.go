package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// client speaks the protocol with as little work of its own as possible: one goroutine, no locks.
type client struct {
	nc    net.Conn
	r     *bufio.Reader
	out   []byte
	start int // of the request that is being written
	in    []byte
}

func open(dial func() (net.Conn, error)) (*client, error) {
	nc, err := dial()
	if err != nil {
		return nil, err
	}
	c := &client{nc: nc, r: bufio.NewReaderSize(nc, 64<<10)}
	c.out = make([]byte, 45+4)
	binary.BigEndian.PutUint32(c.out, 45)
	binary.BigEndian.PutUint32(c.out[16:], 20_000) // the timeout
	binary.BigEndian.PutUint32(c.out[28:], 16)     // length of a password of zeros
	if err := c.flush(); err != nil {
		return nil, err
	}
	_, err = c.frame()
	return c, err
}

// close ends the session, so that its nodes go.
func (c *client) close() {
	c.begin(0, -11)
	c.end()
	if c.flush() == nil {
		_, _ = c.frame()
	}
	_ = c.nc.Close()
}

// begin starts a request in the buffer, end finishes it. What is between them appends to out.
func (c *client) begin(xid, op int32) {
	c.start = len(c.out)
	c.out = append(c.out, 0, 0, 0, 0)
	c.int32(xid)
	c.int32(op)
}

func (c *client) end() {
	binary.BigEndian.PutUint32(c.out[c.start:], uint32(len(c.out)-c.start-4))
}

func (c *client) int32(v int32) { c.out = binary.BigEndian.AppendUint32(c.out, uint32(v)) }

func (c *client) bool(v bool) {
	if v {
		c.out = append(c.out, 1)
		return
	}
	c.out = append(c.out, 0)
}

func (c *client) text(s string) {
	c.int32(int32(len(s)))
	c.out = append(c.out, s...)
}

func (c *client) flush() error {
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// frame reads a frame; it is valid until the next one is read.
func (c *client) frame() ([]byte, error) {
	head, err := c.r.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head))
	_, _ = c.r.Discard(4)
	if cap(c.in) < n {
		c.in = make([]byte, n)
	}
	c.in = c.in[:n]
	_, err = io.ReadFull(c.r, c.in)
	return c.in, err
}

// reply reads a frame and returns whose it is and its body.
func (c *client) reply() (xid int32, body []byte, err error) {
	f, err := c.frame()
	if err != nil {
		return 0, nil, err
	}
	if code := int32(binary.BigEndian.Uint32(f[12:])); code != 0 {
		return 0, nil, fmt.Errorf("refused with code %d", code)
	}
	return int32(binary.BigEndian.Uint32(f)), f[16:], nil
}
