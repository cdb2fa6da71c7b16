package zktest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// RunAddr is [Run] with an address to listen on, for clients that cannot be given another.
func RunAddr(t TB, addr string, opts ...Option) *Server {
	t.Helper()
	s := Run(t, opts...)
	if err := s.Listen(addr); err != nil {
		t.Fatalf("%v; Run and Addr take a free port", err)
	}
	return s
}

// StartAddr is [Start] with an address to listen on.
func StartAddr(addr string, opts ...Option) (*Server, error) {
	s := Start(opts...)
	if err := s.Listen(addr); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Listen opens the port addr of a server without one. It stays the same over restarts.
func (s *Server) Listen(addr string) error {
	if inBubble() {
		return errSocket
	}
	s.netMu.Lock()
	defer s.netMu.Unlock()
	if s.addr != "" {
		return fmt.Errorf("zktest: Listen(%q): the server has the port %s already", addr, s.addr)
	}
	s.addr = addr
	err := s.listen()
	if err != nil {
		s.addr = ""
	}
	return err
}

// WithTLS makes the port of [Server.Addr] speak TLS.
func WithTLS(cfg *tls.Config) Option {
	return func(o *options) { o.tls = cfg }
}

var errSocket = errors.New("zktest: a port inside a synctest bubble, where time stands still while somebody waits for a socket: " +
	"connect with Server.Connect, Server.Session or Server.Dial")

// Addr returns the server's address on TCP loopback. The first call opens a free port, which stays the same
// over restarts. Inside a bubble it fails the test.
func (s *Server) Addr() string {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.netMu.Lock()
	defer s.netMu.Unlock()
	switch {
	case inBubble():
		s.fatalf("%v", errSocket)
	case s.addr == "" && s.closed:
		s.fatalf("zktest: Addr of a server that is closed")
	case s.addr == "":
		s.addr = anyPort
		if err := s.choosePort(); err != nil {
			s.addr = ""
			s.fatalf("%v", err)
		}
	}
	return s.addr
}

// choosePort finds a free port, and opens it unless the server is down or refuses: then it is closed until that is over.
// It is called with netMu held.
func (s *Server) choosePort() error {
	if !s.stopped && s.refusals == 0 {
		return s.listen()
	}
	l, err := s.open()
	if err != nil {
		return err
	}
	return l.Close()
}

// anyPort is the address of a server that nobody told another.
var anyPort = loopback.Addr(0)

// open opens the port, and keeps its number. It is called with netMu held.
func (s *Server) open() (l net.Listener, err error) {
	if s.addr == anyPort {
		l, err = loopback.Listen()
	} else {
		l, err = net.Listen("tcp", s.addr)
	}
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	s.addr = l.Addr().String()
	return l, nil
}

// listen opens the port if it should be open. It is called with netMu held.
func (s *Server) listen() error {
	if s.listener != nil || s.addr == "" || s.stopped || s.refusals > 0 {
		return nil
	}
	if c := s.opts.tls; c != nil && len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return errors.New("zktest: WithTLS: the configuration has no certificate for the server")
	}
	l, err := s.open()
	if err != nil {
		return err
	}
	if s.opts.tls != nil {
		l = &tlsListener{Listener: l, cfg: s.opts.tls}
	}
	s.listener = l
	s.serving.Add(1)
	go func() {
		defer s.serving.Done()
		_ = s.zk.Serve(l) // ends when the port is closed, which is not an error here
	}()
	return nil
}

// unlisten closes the port. It is called with netMu held.
func (s *Server) unlisten() {
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
}

// Serve accepts connections from l until the server is closed; then it closes l and returns nil. An error is
// l's.
func (s *Server) Serve(l net.Listener) error {
	s.mustBeHere()
	err := s.zk.Serve(l)
	if errors.Is(err, engine.ErrClosed) {
		return nil
	}
	return err
}

// tlsListener makes connections that speak TLS. The handshake happens when the server first reads, within the time
// that a connection may stay silent.
type tlsListener struct {
	net.Listener
	cfg *tls.Config
}

func (l *tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return abrupt{tls.Server(c, l.cfg)}, nil
}

// abrupt closes without the closing message of TLS, which may block for seconds when the peer does not read: the
// server is locked when it closes connections.
type abrupt struct{ *tls.Conn }

func (c abrupt) Close() error { return c.NetConn().Close() }
