package session

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// dialer combines WithDialer and WithTLS. Without a server name in the
// TLS configuration, the name to verify is the host that is dialled.
func (s *Session) dialer() func(context.Context, string, string) (net.Conn, error) {
	dial := s.settings.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	if s.settings.TLS == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := s.settings.TLS.Clone()
		if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
			config.ServerName = host
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &zkconn.TLSError{Err: err}
		}
		return conn, nil
	}
}
