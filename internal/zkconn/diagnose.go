package zkconn

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Why an attempt to connect failed, in words for the person that repairs it. The wording is the same
// in the log and in the error of Connect; errors.As still finds the error underneath. A server of another
// protocol is recognised by its answer. One that waits for more than our handshake is reported as silent.

// TLSError marks the error of a TLS handshake, for a dialer to return.
type TLSError struct{ Err error }

func (e *TLSError) Error() string { return "TLS: " + e.Err.Error() }
func (e *TLSError) Unwrap() error { return e.Err }

// diagnosis is an error in other words.
type diagnosis struct {
	text  string
	err   error
	dead  bool   // no server has answered the dial
	guess string // of a server that has closed the connection: what may be behind it, for the end of the text
	fix   string // what to do; "" if it is not known
}

func (d *diagnosis) Error() string { return d.text + d.guess }
func (d *diagnosis) Unwrap() error { return d.err }

// fixedBy adds what to do, which the text does not say: it asks, or is plain.
func (d *diagnosis) fixedBy(fix string) *diagnosis {
	d.fix = fix
	return d
}

// sayingFix adds what to do to the text, too.
func (d *diagnosis) sayingFix(fix string) *diagnosis {
	d.text += ": " + fix
	return d.fixedBy(fix)
}

// Explain is the text of an error of a connection, and what to do, which the text then leaves out; "" if that is not known.
func Explain(err error) (text, fix string) {
	if d := new(diagnosis); errors.As(err, &d) {
		fix = d.fix
	}
	return strings.TrimSuffix(err.Error(), ": "+fix), fix
}

func diagnosed(err error, format string, args ...any) *diagnosis {
	return &diagnosis{text: fmt.Sprintf(format, args...), err: err}
}

// noServer is diagnosed for a dial that no server has answered.
func noServer(err error, format string, args ...any) *diagnosis {
	return &diagnosis{text: fmt.Sprintf(format, args...), err: err, dead: true}
}

// What may be behind a silence.
const (
	guessName = "does the name server answer?"
	guessDark = "is the host down, or a firewall in between?"
)

// What to do. The command has its flags in place of the options of Connect.
const (
	fixName    = "correct the name, or look at the name server"
	fixPort    = "correct the port (ZooKeeper's is usually 2181)"
	fixStart   = "start it, correct its port, or take it out of the connect string"
	fixDark    = "start its host, or open the firewall"
	fixSilent  = "correct its port or WithTLS, or look at its log"
	fixClosed  = "start servers until more than half of the ensemble run, or correct its port or WithTLS"
	fixPlain   = "leave out WithTLS, or give its port for TLS"
	fixSecured = "use WithTLS, or give its port without TLS"
)

// guessSilent is what may be behind the silence of a server that has accepted the connection.
func guessSilent(secured bool) string {
	if secured {
		return "is this ZooKeeper's port, or does the server hang?"
	}
	return "is this ZooKeeper's port, does it want TLS, or does the server hang?"
}

// isSecured reports whether a connection is one of TLS.
func isSecured(conn net.Conn) bool {
	_, secured := conn.(interface{ NetConn() net.Conn })
	return secured
}

// diagnoseLookUp says why the look-up of a name failed, which has taken so long.
func diagnoseLookUp(err error, host string, took time.Duration) error {
	if isTimeout(err) {
		return noServer(err, "looking up %s took %v, and got no answer: %s", host, shown(took), guessName).fixedBy(fixName)
	}
	return unknownName(err)
}

// unknownName is the error of a look-up that failed.
func unknownName(err error) error {
	var name *net.DNSError
	switch {
	case !errors.As(err, &name):
		return err
	case name.IsNotFound:
		return noServer(err, "%v: is the name right?", err).fixedBy(fixName)
	}
	return noServer(err, "%v: does the name server work?", err).fixedBy(fixName)
}

// diagnoseDial says why a dial failed; limit is how long the attempt had.
func diagnoseDial(err error, limit time.Duration) error {
	var secure *TLSError
	var name *net.DNSError
	switch {
	case errors.As(err, &secure):
		return diagnoseTLS(secure.Err, limit)
	case errors.As(err, &name) && isTimeout(err): // a dialer that looks up names by itself
		return noServer(err, "looking up %s takes more than %v", name.Name, shown(limit)).fixedBy(fixName)
	case errors.Is(err, syscall.ECONNREFUSED):
		return noServer(err, "connection refused: no server listens there").fixedBy(fixStart)
	case isTimeout(err):
		return noServer(err, "silent: no answer to the dial in %v: %s", shown(limit), guessDark).fixedBy(fixDark)
	}
	return unknownName(err)
}

// diagnoseTLS says why a TLS handshake failed, or what an alert in place of an answer means.
func diagnoseTLS(err error, limit time.Duration) error {
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return diagnosed(err, "TLS: the server's certificate is refused here: %v", certificate.Err).sayingFix(fixCertificate(certificate.Err))
	case errors.As(err, &header):
		return diagnosed(err, "TLS: the server answers without TLS: is this its plain port?").fixedBy(fixPlain)
	case isAlert(err):
		d := diagnosed(err, "TLS: the server refuses the handshake: %v", err)
		if strings.Contains(err.Error(), "certificate") {
			d.fix = "show a certificate that it trusts with WithTLSFiles"
		}
		return d
	case isTimeout(err):
		return diagnosed(err, "TLS: silent: no answer to the handshake in %v (is this a port without TLS?)", shown(limit)).fixedBy(fixPlain)
	case isClosed(err):
		return diagnosed(err, "TLS: the server closed the connection during the handshake: is this a port without TLS?").fixedBy(fixPlain)
	}
	return &TLSError{err}
}

// fixCertificate is what to do about a certificate that is refused here.
func fixCertificate(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "give its authority with WithTLSFiles"
	case errors.As(err, &name):
		return "give its name as the ServerName of WithTLS"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew it, or correct the clock here"
	}
	return "correct it, or the authority in WithTLSFiles"
}

// diagnoseHandshake says why a connection ended before it could be used; limit is how long the attempt had.
func diagnoseHandshake(err error, raw net.Conn, limit time.Duration) error {
	var violation *violationError
	secured := isSecured(raw)
	switch {
	case errors.As(err, &violation):
		return err
	case isAlert(err):
		return diagnoseTLS(err, limit)
	case isTimeout(err):
		return diagnosed(err, "silent: it accepted the connection and gave no answer in %v: %s", shown(limit), guessSilent(secured)).fixedBy(fixSilent)
	case isClosed(err):
		port := "for TLS or "
		if secured {
			port = ""
		}
		return &diagnosis{text: "it accepted the connection, then closed it", err: err, fix: fixClosed,
			guess: ": is there no quorum, is this a port " + port + "for other servers (2888, 3888), or has it as many connections from here as its maxClientCnxns allows?"}
	}
	return err
}

// diagnoseLoss says why a connection that was in use ended. stall is why this
// process had no answer, as far as it knows; silent is how long it had none.
func diagnoseLoss(err error, stall string, silent time.Duration) error {
	switch {
	case isTimeout(err):
		return diagnosed(err, "silent: %s", cmp.Or(stall, fmt.Sprintf("no answer for %v", shown(silent))))
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return diagnosed(err, "the server closed it")
	}
	return err
}

// notZooKeeper is the error of a handshake that was answered with something else.
func notZooKeeper(said []byte) error {
	const alert, major = 0x15, 3
	if len(said) > 1 && said[0] == alert && said[1] == major {
		return diagnosed(nil, "not ZooKeeper without TLS: it answered with a TLS alert, so this is a port for TLS").sayingFix(fixSecured)
	}
	line, _, _ := bytes.Cut(said[:min(len(said), 80)], []byte("\n"))
	text := strings.TrimSpace(string(line))
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return diagnosed(nil, "not ZooKeeper: it answered % x", said[:min(len(said), 16)]).sayingFix(fixPort)
	}
	return diagnosed(nil, "not ZooKeeper: it answered %q", text).sayingFix(fixPort)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// isAlert reports whether err is a TLS alert that the other side sent.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// isClosed reports whether the other side, or something on the way to it, has ended a connection.
func isClosed(err error) bool {
	return isOneOf(err, []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE})
}

// shown rounds a duration to what people want to read.
func shown(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
