package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

var (
	// ErrOver is returned for an operation of an epoch whose session has ended or can no
	// longer be proved alive. What the operation did, if anything, ends with the session.
	// A caller that does not translate it returns what zksync documents.
	ErrOver = errs.Kind("zksync: the session is over", errs.ErrSessionExpired)

	// ErrNotSent is returned for a request that was not sent, because there was no connection.
	ErrNotSent = errors.New("zksync: not sent: no connection")

	// ErrClosed is returned once the client was closed; it is an errs.ErrClosed, too.
	ErrClosed = errs.Kind("zksync: client closed", errs.ErrClosed)

	// ErrAuth is returned when the servers refuse the credentials, or demand others. Another attempt would not change that.
	ErrAuth = fmt.Errorf("%w: the servers refuse the credentials", errs.ErrMisuse)

	// ErrTooLong is returned for a read whose answer is longer than any that this client takes.
	ErrTooLong = fmt.Errorf("the node holds more than this client takes, %d bytes of data, or %d with the names of its children", maxFrame, maxListing)
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

// errUnimplemented is code -6, for which the client library has no name.
var errUnimplemented = errors.New("zksync: the server does not know the operation")

// Unimplemented reports whether the server does not know the operation.
func Unimplemented(err error) bool {
	return errors.Is(err, errUnimplemented)
}

// classify turns the error of an answer into an unknownError, unless it is known that the request was not applied.
func classify(err error) error {
	if isOneOf(err, answers) || Unimplemented(err) {
		return err
	}
	return &unknownError{err}
}

func isOneOf(err error, set []error) bool {
	for _, e := range set {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
