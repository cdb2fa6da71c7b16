package session

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// secure makes a connection speak TLS, as WithTLS says. Without a server name in
// the TLS configuration, the name to verify is that of the connect string.
func (s *Session) secure(ctx context.Context, raw net.Conn, host string) (net.Conn, error) {
	config := s.settings.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, &zkconn.TLSError{Err: err}
	}
	return conn, nil
}
