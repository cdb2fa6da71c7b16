package zkconn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

var (
	// ErrOver is returned for an operation of an epoch whose session has ended or can no
	// longer be proved alive. What the operation did, if anything, ends with the session.
	ErrOver = errors.New("zkconn: the session is over")

	// ErrNotSent is returned for a request that was not sent, because there was no connection.
	ErrNotSent = errors.New("zkconn: not sent: no connection")

	// ErrClosed is returned once the client was closed.
	ErrClosed = errors.New("zkconn: client closed")

	// ErrAuth is returned when the servers refuse the credentials, or demand others. Another attempt would not change that.
	ErrAuth = fmt.Errorf("%w: the servers refuse the credentials", errs.ErrMisuse)

	// ErrTooLong is returned for a read whose answer is longer than any that this client takes.
	ErrTooLong = fmt.Errorf("the node holds more than this client takes, %d bytes", maxFrame)

	errSilent = fmt.Errorf("%w: no server acknowledged anything for too long", ErrOver)
)

// unknownError marks the error of an operation of which nobody here can say whether the servers applied it.
type unknownError struct{ err error }

func (e *unknownError) Error() string   { return "outcome unknown: " + e.err.Error() }
func (e *unknownError) Unwrap() error   { return e.err }
func (e *unknownError) Ambiguous() bool { return true }

// Unknown reports whether err leaves it open whether the servers applied the operation.
func Unknown(err error) bool {
	var u *unknownError
	return errors.As(err, &u)
}

// violationError marks an error of a server that broke the protocol.
type violationError struct{ err error }

func (e *violationError) Error() string { return e.err.Error() }
func (e *violationError) Unwrap() error { return e.err }

// answers are the errors with which a server says that it did not apply the operation,
// and that another attempt would not help. ErrSessionMoved is not among them: it
// passes, so it is treated like any other answer that leaves the outcome unknown.
var answers = []error{
	zk.ErrAPIError, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion,
	zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrSessionExpired,
	zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments,
	zk.ErrReconfigDisabled, ErrTooLong,
}

// local are errors that the client returns before it sends anything.
var local = []error{zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrShortBuffer}

// errUnimplemented is code -6, for which the client library has no name.
var errUnimplemented = errors.New("zkconn: the server does not know the operation")

// unimplemented is the text of that error in the client library, on an external connection.
var unimplemented = fmt.Sprintf("unknown error: %v", zk.ErrCode(-6))

// Unimplemented reports whether the server does not know the operation.
func Unimplemented(err error) bool {
	return err != nil && (errors.Is(err, errUnimplemented) || strings.Contains(err.Error(), unimplemented))
}

// classify turns an error of the client library into one of four: nil, an answer of the server (not applied),
// ErrNotSent, or an unknownError. The library's ErrConnectionClosed alone has four different meanings, and a
// write error comes raw from the socket. So everything that is not known to be harmless counts as unknown.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoServer):
		return ErrNotSent // the client tried all servers in vain and gave up what was waiting
	case isOneOf(err, answers), isOneOf(err, local), Unimplemented(err), errors.Is(err, ErrNotSent):
		return err
	}
	return &unknownError{err}
}

// unanswered reports whether err, after which the outcome of a request on an external connection is
// unknown, comes from a lost connection. Such an error may be any error, since that of a write comes
// raw from the socket. So the test is that it is none of the codes with which a server answers.
func unanswered(err error) bool {
	return !isOneOf(err, []error{zk.ErrSessionMoved, zk.ErrNothing, zk.ErrClosing}) && !strings.Contains(err.Error(), "unknown error: ")
}

// proves reports whether err is the answer of a server for which the session is alive.
func proves(err error) bool {
	return err == nil || Unimplemented(err) || isOneOf(err, answers) && !errors.Is(err, zk.ErrSessionExpired)
}

func isOneOf(err error, set []error) bool {
	for _, e := range set {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
