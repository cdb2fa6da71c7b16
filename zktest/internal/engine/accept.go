package engine

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// ErrClosed is returned by Serve after Close.
var ErrClosed = errors.New("zktest: server closed")

// Serve accepts connections until l fails or the server is closed, and closes l. It
// returns [ErrClosed] after Close.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		return ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		_ = l.Close()
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.ServeConn(nc)
		case s.isClosed():
			return ErrClosed
		case !passes(err):
			return err
		default:
			s.log.Once("accept", "").Warn("cannot accept connections", "error", err)
			s.pauseAccepting()
		}
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// passes reports whether the listener lives on after an error: the process or the system has too many open files, or
// the peer has gone already.
func passes(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// pauseAccepting waits a moment for files to be closed.
func (s *Server) pauseAccepting() {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.done:
	}
}

// ServeConn serves one connection, which it owns from now on. It returns at once. A
// stopped or closed server closes the connection; a member without a leader does so when something comes that is
// not a four-letter word.
func (s *Server) ServeConn(nc net.Conn) { s.ServeClient(nc, nil) }

// ServeClient is ServeConn for a client of which joined, if it is not nil, is told each session that it begins. joined runs while
// the server is locked.
func (s *Server) ServeClient(nc net.Conn, joined func(id int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopped {
		_ = nc.Close()
		return
	}
	c := s.newConn(nc)
	c.joined = joined
	s.conns[c] = struct{}{}
	c.tell(true)
	s.spawn(c.readLoop)
	s.spawn(c.writeLoop)
}
