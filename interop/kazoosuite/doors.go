//go:build unix

package main

import (
	"io"
	"net"
	"sync"
)

// door is an address of a server. While it is shut nobody gets in, and all who are in are thrown out; the server
// keeps its data, as one does that is stopped and started again.
type door struct {
	address string // where clients connect
	server  string

	mu    sync.Mutex
	l     net.Listener // nil while it is shut
	conns map[net.Conn]struct{}
}

// openDoor opens a door of a server at a free port.
func openDoor(server string) (*door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &door{address: l.Addr().String(), server: server, l: l, conns: map[net.Conn]struct{}{}}
	go d.receive(l)
	return d, nil
}

// open opens the door again.
func (d *door) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.l != nil {
		return nil
	}
	l, err := net.Listen("tcp", d.address)
	if err == nil {
		d.l = l
		go d.receive(l)
	}
	return err
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.l == nil {
		return
	}
	_ = d.l.Close()
	d.l = nil
	for c := range d.conns {
		_ = c.Close()
	}
}

func (d *door) receive(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it is shut
		}
		go d.pass(c)
	}
}

// pass copies what a client and the server say, until one of them or the door closes.
func (d *door) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", d.server)
	if err != nil {
		return
	}
	defer s.Close()
	d.mu.Lock()
	if d.l == nil {
		d.mu.Unlock()
		return
	}
	d.conns[c], d.conns[s] = struct{}{}, struct{}{}
	d.mu.Unlock()
	done := make(chan struct{}, 2)
	for from, to := range map[net.Conn]net.Conn{c: s, s: c} {
		go func() {
			_, _ = io.Copy(to, from)
			done <- struct{}{}
		}()
	}
	<-done
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	delete(d.conns, s)
}
