package zksync

import (
	"github.com/go-menagerie/menagerie/internal/errs"
)

// Sentinel errors: compare with errors.Is, never with ==.
var (
	// ErrNotAcquired: a Try form found another contender ahead. It leaves no node.
	ErrNotAcquired = errs.ErrNotAcquired

	// ErrLost: a lease can no longer be proved to be held: its session is lost, its node removed externally,
	// or a bound has passed. Another process may hold the path.
	ErrLost = errs.ErrLost

	// ErrReleased: a lease was used after its Unlock, or after Close of its Session.
	ErrReleased = errs.ErrReleased

	// ErrSessionExpired: the session of a call has ended, and the call cannot go on in the next one.
	ErrSessionExpired = errs.ErrSessionExpired

	// ErrClosed: the Session was closed before or during the call.
	ErrClosed = errs.ErrClosed

	// ErrMisuse: the call can never succeed: a malformed path, an unlock without a lock, parameters that
	// contradict other processes. Do not retry it.
	ErrMisuse = errs.ErrMisuse

	// ErrUpgrade: a reader asked for the write lock of the same path, which would be a deadlock. It is found
	// if the context of the call comes from the read lease.
	ErrUpgrade = errs.ErrUpgrade

	// ErrBroken: the other parties of a barrier can no longer be expected, or nodes were removed externally.
	ErrBroken = errs.ErrBroken

	// ErrMaxHold: a lease was held for longer than its WithMaxHold. It is an ErrLost.
	ErrMaxHold = errs.ErrMaxHold

	// ErrNoLeader: an election has no leader now.
	ErrNoLeader = errs.ErrNoLeader

	// ErrNotFound: there is no such thing. It is an fs.ErrNotExist.
	ErrNotFound = errs.ErrNotFound

	// ErrDeadlock: the call waited for a caller that waited for this one: see WithDeadlockDetection. The error
	// names the cycle.
	ErrDeadlock = errs.ErrDeadlock

	// ErrStale: a newer token was seen, so the holder no longer holds; or WithForwardOnly found that the
	// servers have lost transactions.
	ErrStale = errs.ErrStale
)

// Error is the error of a call of this module, such as "zkqueue: put /q: session closed".
type Error struct {
	Package string // empty is "zksync"
	Op      string // "lock", "connect"; may be empty
	Path    string // may be empty
	Err     error  // the reason; never nil
}

func (e *Error) Error() string { return (*errs.Error)(e).Error() }

func (e *Error) Unwrap() error { return e.Err }

func init() {
	errs.Public = func(e *errs.Error) error { return (*Error)(e) }
	errs.AsPublic = func(err error) (*errs.Error, bool) {
		e, ok := err.(*Error)
		return (*errs.Error)(e), ok
	}
}

// Ambiguous reports whether it is unknown, after err, if the servers applied the request.
func Ambiguous(err error) bool { return errs.Ambiguous(err) }
