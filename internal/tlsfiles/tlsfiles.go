// Package tlsfiles reads certificates from files. Files are replaced while a program
// runs, because certificates expire, so they are read again for each connection.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Files are the names of files in PEM form: the authorities that are trusted, and the own certificate with
// its key. "" is none. The methods may be called by many goroutines at once.
type Files struct {
	CA, Cert, Key string

	mu    sync.Mutex
	roots *x509.CertPool    // of the last time that CA could be read
	pairs []tls.Certificate // of the last time that Cert and Key belonged together
}

// Error says which of the files cannot be used, and why.
type Error struct {
	Parts []string // of "ca", "cert" and "key"
	Why   string
	Err   error // the error underneath; nil if there is none
}

func (e *Error) Error() string { return e.Why }
func (e *Error) Unwrap() error { return e.Err }

// Config returns a copy of base, which may be nil, with what is in the files now. If a file cannot be used (while files are replaced,
// a certificate may be newer than its key), the error says why, and the configuration has what was read before. If
// nothing was read before, the configuration is nil.
func (f *Files) Config(base *tls.Config) (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err, more := f.readAuthorities(), f.readPair()
	switch {
	case err == nil:
		err = more
	case more != nil:
		err = fmt.Errorf("%w; %w", err, more)
	}
	if f.CA != "" && f.roots == nil || f.Cert != "" && f.pairs == nil {
		return nil, err
	}
	c := base.Clone()
	if c == nil {
		c = new(tls.Config)
	}
	if f.CA != "" {
		c.RootCAs = f.roots
	}
	if f.Cert != "" {
		c.Certificates, c.GetClientCertificate = f.pairs, nil
	}
	return c, err
}

func (f *Files) readAuthorities() error {
	if f.CA == "" {
		return nil
	}
	pem, err := read("ca", f.CA)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		why := fmt.Sprintf("the file %s has no certificate in PEM form (-----BEGIN CERTIFICATE-----)", errs.ShowPath(f.CA))
		return &Error{Parts: []string{"ca"}, Why: why}
	}
	f.roots = roots
	return nil
}

func (f *Files) readPair() error {
	if f.Cert == "" {
		return nil
	}
	cert, err := read("cert", f.Cert)
	if err != nil {
		return err
	}
	key, err := read("key", f.Key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		why := fmt.Sprintf("the files %s and %s are not a certificate and its key in PEM form: %s",
			errs.ShowPath(f.Cert), errs.ShowPath(f.Key), strings.TrimPrefix(err.Error(), "tls: "))
		return &Error{Parts: []string{"cert", "key"}, Why: why, Err: err}
	}
	f.pairs = []tls.Certificate{pair}
	return nil
}

func read(part, name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err == nil {
		return data, nil
	}
	var why *os.PathError
	text := err.Error()
	if errors.As(err, &why) {
		text = why.Err.Error()
	}
	return nil, &Error{Parts: []string{part}, Why: fmt.Sprintf("cannot read the file %s: %s", errs.ShowPath(name), text), Err: err}
}
