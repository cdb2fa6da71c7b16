package engine

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// script turns bytes into what up to four clients do, in order. Bytes that are missing at the end are zero.
type script struct {
	rest  []byte
	peers [4]*peer
	t     *testing.T
	srv   *Server
	wg    sync.WaitGroup
}

// peer is one client of a script.
type peer struct {
	nc      net.Conn
	id      int64
	greeted chan struct{} // closed when id is known
	resume  chan struct{} // reading stops while this is set and open
	mu      sync.Mutex    // guards resume
	xid     int32
}

func (p *script) next() byte {
	if len(p.rest) == 0 {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *script) bytes() []byte {
	n := min(int(p.next()), len(p.rest))
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// run plays the script and closes all connections.
func (p *script) run(t *testing.T, s *Server) {
	p.t, p.srv = t, s
	for len(p.rest) > 0 {
		b := p.next()
		p.step(int(b>>4)&3, b&15)
	}
	for i := range p.peers {
		p.hangUp(i)
	}
	p.wg.Wait()
}

func (p *script) step(i int, action byte) {
	switch action {
	case 0, 1, 2, 3:
		p.hangUp(i)
		p.hello(i, action)
	case 4:
		p.send(i, p.bytes())
	case 5: // any body
		op := allOps[int(p.next())%len(allOps)]
		p.request(i, op, func(e *wire.Encoder) { e.B = append(e.B, p.bytes()...) })
	case 6, 7, 8:
		c := wellFormed[int(p.next())%len(wellFormed)]
		p.request(i, c.op, c.body)
	case 9:
		p.send(i, []byte(fourLetters[int(p.next())%len(fourLetters)]))
	case 10: // half a frame, and perhaps more of it later
		p.send(i, binary.BigEndian.AppendUint32(nil, uint32(p.next())<<12))
	case 11:
		time.Sleep(time.Duration(p.next()) * 100 * time.Millisecond)
	case 12:
		p.hangUp(i)
	case 13:
		p.stopOrGo(i)
	case 14: // a burst
		c := wellFormed[int(p.next())%len(wellFormed)]
		for range p.next() {
			p.request(i, c.op, c.body)
		}
	case 15:
		p.srv.Expire(p.idOf(int(p.next()) & 3))
	}
}

// hello opens a connection: one that says nothing, a new session, one that another peer has, or a strange one.
func (p *script) hello(i int, kind byte) {
	client, server := net.Pipe()
	p.srv.ServeConn(server)
	w := &peer{nc: client, greeted: make(chan struct{})}
	p.peers[i] = w
	p.wg.Go(func() { w.read(p.t, kind == 1) })
	timeout := time.Duration(p.next()) * 200 * time.Millisecond
	switch kind {
	case 1:
		p.send(i, connectFrame(timeout, 0, nil, 0))
		<-w.greeted
	case 2:
		id := p.idOf(int(p.next()) & 3)
		p.send(i, connectFrame(timeout, id, password(id), 0))
	case 3:
		variant := p.next()
		frame := connectFrame(timeout-time.Duration(variant)*time.Second, int64(variant>>6), p.bytes(), int64(variant>>4&3)-1)
		p.send(i, frame[:len(frame)-int(variant&1)]) // without the read-only flag the length is wrong
	}
}

func (p *script) idOf(i int) int64 {
	if w := p.peers[i]; w != nil {
		return w.id
	}
	return int64(i)
}

// read takes whatever comes. Where the connection began as it should, it must be frames.
func (w *peer) read(t *testing.T, proper bool) {
	defer func() {
		if proper && w.id == 0 {
			close(w.greeted)
		}
	}()
	for {
		w.mu.Lock()
		resume := w.resume
		w.mu.Unlock()
		if resume != nil {
			<-resume
		}
		if !proper {
			if _, err := w.nc.Read(make([]byte, 4096)); err != nil {
				return
			}
			continue
		}
		var head [4]byte
		if _, err := io.ReadFull(w.nc, head[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(head[:])
		if n < 16 || n > maxReply {
			t.Errorf("a frame of %d bytes", n)
			return
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(w.nc, frame); err != nil {
			return
		}
		if w.id == 0 {
			w.id = int64(binary.BigEndian.Uint64(frame[8:]))
			if w.id == 0 {
				t.Error("a new session was refused")
				return
			}
			close(w.greeted)
		}
	}
}

// send does not wait for a server that does not read.
func (p *script) send(i int, b []byte) {
	if w := p.peers[i]; w != nil && len(b) > 0 {
		_ = w.nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = w.nc.Write(b)
	}
}

func (p *script) request(i int, op wire.Op, body func(*wire.Encoder)) {
	w := p.peers[i]
	if w == nil {
		return
	}
	w.xid++
	e := wire.NewFrame(64)
	e.Int32(w.xid)
	e.Int32(int32(op))
	body(e)
	p.send(i, e.Frame())
}

func (p *script) hangUp(i int) {
	if w := p.peers[i]; w != nil {
		_ = w.nc.Close()
		p.release(w)
		p.peers[i] = nil
	}
}

// stopOrGo makes a peer stop reading, or read on.
func (p *script) stopOrGo(i int) {
	w := p.peers[i]
	if w == nil || p.release(w) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resume = make(chan struct{})
}

func (p *script) release(w *peer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resume == nil {
		return false
	}
	close(w.resume)
	w.resume = nil
	return true
}

// scripts are seeds: each kind of client once, and what they do to each other.
var scripts = [][]byte{
	{},
	[]byte("\x00\x00\x00\x09\x00"), // a word, before a session
	[]byte("\x01\x01\xff\x06\x00\x06\x01\x06\x02\x0b\x01\x06\x03\x0c"),
	[]byte("\x00\x01\xff\x11\xff\x06\x00\x16\x03\x06\x04\x0d\x0e\x02\xff\x0b\x20\x0d\x1e\x05\xff"),
	[]byte("\x00\x01\xff\x12\xff\x00\x06\x00\x22\xff\x01\x06\x03\x26\x04\x0f\x02\x0b\x08"),
	[]byte("\x00\x03\x00\x00\x04abcd\x13\x10\xff\x00\x23\x00\x31\x00\x0a\x40\x1a\x01\x0b\x50"),
	[]byte("\x01\x01\xff\x0e\x00\xff\x0e\x02\xff\x0e\x0d\xff\x0f\x00\x11\xff\x1e\x00\x30"),
	[]byte("\x00\x01\xff\x05\x01\x10\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff\x05\x08\x04\xff\xff\xff\xff"),
	[]byte("\x42\x61\x30\x25\x25\x30\x98\x30\x30\x30"), // a session begun again through a follower
	[]byte("\x27\x11\x30\x58\x35"), // one whose node the reaper removes a minute later
}

var fourLetters = []string{
	"ruok", "srvr", "stat", "mntr", "cons", "wchs", "wchc", "wchp", "dump", "conf", "envi", "isro", "crst", "srst", "dirs", "kill", "what",
}
