package session

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/tlsfiles"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// TLSFiles sets the files of WithTLSFiles.
func (s *Settings) TLSFiles(ca, cert, key string) {
	switch {
	case ca == "" && cert == "" && key == "":
		s.Misuse("WithTLSFiles without a file; WithTLS trusts the authorities of this machine")
	case cert == "" && key != "":
		s.Misuse("WithTLSFiles with the key %s and no certificate; give both", errs.ShowPath(key))
	case cert != "" && key == "":
		s.Misuse("WithTLSFiles with the certificate %s and no key; give both", errs.ShowPath(cert))
	}
	s.Files = &tlsfiles.Files{CA: ca, Cert: cert, Key: key}
}

// checkTLS reports files that cannot be used. Later such files are no reason to give up: see secure.
func (s *Settings) checkTLS() error {
	if s.Files == nil {
		return nil
	}
	if _, err := s.Files.Config(nil); err != nil {
		return errs.Misuse("WithTLSFiles: %w", err)
	}
	return nil
}

// secured reports whether connections speak TLS.
func (s *Settings) secured() bool { return s.TLS != nil || s.Files != nil }

// secure makes a connection speak TLS, as WithTLS and WithTLSFiles say. Without a server name
// in the TLS configuration, the name to verify is that of the connect string.
func (s *Session) secure(ctx context.Context, raw net.Conn, host string) (net.Conn, error) {
	config := s.settings.TLS.Clone()
	if f := s.settings.Files; f != nil {
		var err error
		config, err = f.Config(config) // Connect has read them, so there is a configuration in any case
		if err != nil {
			s.log.Once("certificates", err.Error()).Warn("certificates cannot be read again; those read before are used", "error", err)
		}
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, &zkconn.TLSError{Err: err}
	}
	return conn, nil
}
