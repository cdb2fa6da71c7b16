package zkconn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// maxFrame bounds what a server may send at once: servers store no more than 1 MB in a node, unless their jute.maxbuffer
// allows more. Only a listing that was asked for may be longer, up to maxListing: that is a million contenders. The
// answer to a read of our own that is still longer is skipped. The client library keeps its largest buffer as long as the
// connection stands.
const (
	maxFrame   = 4 << 20
	maxListing = 64 << 20
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
	ErrAuth = errs.Misuse("the servers refuse the credentials")

	// ErrTooLong is returned for a read whose answer is longer than any that this client takes.
	ErrTooLong = fmt.Errorf("the node holds more than this client takes, %d bytes of data, or %d with the names of its children", maxFrame, maxListing)

	// ErrBackwards ends a client with Config.ForwardOnly whose servers have lost transactions.
	ErrBackwards = errs.Kind("the servers have lost transactions that this session has seen (WithForwardOnly): their tokens and values may be older than known ones", errs.ErrStale)
)

// TxnError is the answer to a transaction that was not applied:
// which operation failed (-1 if that is not known), and why.
type TxnError struct {
	Index int
	Err   error
}

func (e *TxnError) Error() string { return e.Err.Error() }
func (e *TxnError) Unwrap() error { return e.Err }

// unknownError marks the error of an operation that the servers may or may not have applied.
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
func Unimplemented(err error) bool { return errors.Is(err, errUnimplemented) }

// classify turns the error of an answer into an unknownError, unless it is known that the request was not applied.
func classify(err error) error {
	if isOneOf(err, answers) || Unimplemented(err) {
		return err
	}
	return &unknownError{err}
}

func isOneOf(err error, set []error) bool {
	return slices.ContainsFunc(set, func(e error) bool { return errors.Is(err, e) })
}

// Error codes of servers. Those from codeNoNode to codeNotEmpty are refusals that the leader
// writes into its history, as its final answer to the request.
const (
	codeUnimplemented  = -6
	codeNoNode         = -101
	codeNoAuth         = -102
	codeBadVersion     = -103
	codeNoChildren     = -108
	codeNodeExists     = -110
	codeNotEmpty       = -111
	codeSessionExpired = -112
	codeAuthDemanded   = -124 // the client must authenticate, and has not
	codeTooLong        = 1    // of no server: see wire.skip
)

// codes are the error codes that have a name in the client library, or here.
var codes = map[int32]error{
	codeNoNode: zk.ErrNoNode, codeNoAuth: zk.ErrNoAuth, codeBadVersion: zk.ErrBadVersion,
	codeNoChildren: zk.ErrNoChildrenForEphemerals, codeNodeExists: zk.ErrNodeExists,
	codeNotEmpty: zk.ErrNotEmpty, codeSessionExpired: zk.ErrSessionExpired,
	codeUnimplemented: errUnimplemented, -8: zk.ErrBadArguments, -100: zk.ErrAPIError, -114: zk.ErrInvalidACL,
	-115: zk.ErrAuthFailed, -118: zk.ErrSessionMoved, codeTooLong: ErrTooLong,
}

// refusal is an error code that leaves the outcome unknown: it is about the server, or passes, or is not known here.
type refusal int32

var refusals = map[refusal]string{
	-1: "system error", -2: "runtime inconsistency", -3: "data inconsistency", -5: "marshalling error", -7: "operation timeout",
	-13: "new configuration without a quorum", -14: "reconfiguration in progress", -116: "closing", -119: "not a read-only server",
	-120: "ephemeral node of a local session", -122: "request timeout", -125: "quota exceeded", -127: "throttled",
}

func (c refusal) Error() string {
	if name, ok := refusals[c]; ok {
		return name
	}
	return fmt.Sprintf("the server answered with error %d", int32(c))
}

// codeOf is the code of an error that codeError has returned.
func codeOf(err error) int32 {
	for code, e := range codes {
		if e == err {
			return code
		}
	}
	var why refusal
	errors.As(err, &why)
	return int32(why)
}

// codeError is the error for a code; nil for 0.
func codeError(code int32) error {
	if err, ok := codes[code]; ok || code == 0 {
		return err
	}
	return refusal(code)
}
