package zksync

import (
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Sentinel errors. Calls wrap them in an [*Error] that names the operation and
// the path, so compare with errors.Is, never with ==. Errors of a context
// (context.Canceled, context.DeadlineExceeded) are reachable the same way.
var (
	// ErrNotAcquired is returned when a Try form finds another contender
	// ahead in the queue. It leaves no node on the servers.
	ErrNotAcquired = errs.ErrNotAcquired

	// ErrLost is returned when a lease can no longer be proved to be held: its
	// session was lost, its node was removed externally, or a bound on the hold
	// has passed. It is also the cause of the lease's context.
	// From then on another process may hold the same path.
	ErrLost = errs.ErrLost

	// ErrReleased is returned when a lease is used after its own Unlock, or after Close of its Session. It is
	// also the cause of the lease's context then.
	ErrReleased = errs.ErrReleased

	// ErrSessionExpired is returned when the ZooKeeper session in which a call
	// began has ended, and the call cannot go on in
	// the next session.
	ErrSessionExpired = errs.ErrSessionExpired

	// ErrClosed is returned when the Session was closed before or during the call.
	ErrClosed = errs.ErrClosed

	// ErrMisuse is returned when the call can never succeed: a
	// malformed path, a size below one, an unlock without a lock, parameters
	// that contradict those of other processes. Do not retry it.
	ErrMisuse = errs.ErrMisuse

	// ErrUpgrade is returned when a holder of a read lock asks for the write lock
	// of the same path. Waiting would be a deadlock, so the call fails at once.
	ErrUpgrade = errs.ErrUpgrade

	// ErrBroken is returned when the other parties of a barrier can no longer be expected: one gave up or died,
	// or the barrier was reset. Other types return it when somebody has removed a part of their nodes.
	ErrBroken = errs.ErrBroken

	// ErrMaxHold is returned when a lease was given up because it was held for
	// longer than its WithMaxHold. It is a kind of loss:
	// errors.Is(ErrMaxHold, ErrLost) is true.
	ErrMaxHold = errs.ErrMaxHold

	// ErrNoLeader is returned when an election has no leader now.
	ErrNoLeader = errs.ErrNoLeader

	// ErrNotFound is returned when there is no such thing as the call asks about. It is also an fs.ErrNotExist:
	// errors.Is(ErrNotFound, fs.ErrNotExist) is true.
	ErrNotFound = errs.ErrNotFound

	// ErrStale is returned when a token is older than one already seen: its
	// holder no longer holds. With WithForwardOnly it is also returned when the servers have lost transactions.
	ErrStale = errs.ErrStale
)

// Error is the error of a call of this module. Its text is one line, such as "zkqueue: put /q: session closed"; it quotes and
// shortens an unprintable or long path.
type Error struct {
	Package string // the package whose method was called: "zkqueue"; empty is "zksync"
	Op      string // the operation that failed, in lower case: "lock", "unlock", "connect" ...; empty if there is none
	Path    string // the path that it was about, whole; empty if there is none
	Err     error  // the reason; never nil in an Error of this module
}

// Error returns "<package>: <op> <path>: <reason>".
func (e *Error) Error() string { return (*errs.Error)(e).Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func init() {
	errs.Public = func(e *errs.Error) error { return (*Error)(e) }
	errs.Named = func(err error) *errs.Error {
		var e *Error
		errors.As(err, &e)
		return (*errs.Error)(e)
	}
}

// Ambiguous reports whether it is unknown, after err, if the servers applied the request: it was sent, and the
// connection ended before the reply came.
func Ambiguous(err error) bool { return errs.Ambiguous(err) }
