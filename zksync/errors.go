package zksync

import "github.com/go-menagerie/menagerie/internal/errs"

// Sentinel errors. Calls wrap them in an [*Error] that names the operation and
// the path, so compare with errors.Is, never with ==. Errors of a context
// (context.Canceled, context.DeadlineExceeded) are reachable the same way.
var (
	// ErrNotAcquired is returned when a Try form finds that somebody else is
	// ahead in the queue. Nothing is left behind on the servers.
	ErrNotAcquired = errs.ErrNotAcquired

	// ErrLost is returned when a lease can no longer be proved to be held: its
	// session was lost, its node was removed by somebody else, or it was given up
	// because of a bound on the hold. It is also the cause of the lease's context.
	// Another process may hold the same path from then on.
	ErrLost = errs.ErrLost

	// ErrReleased is returned when a lease is used after its own Unlock. It is
	// also the cause of the lease's context then.
	ErrReleased = errs.ErrReleased

	// ErrSessionExpired is returned when the ZooKeeper session in which a call
	// began ended before the call did, and the call cannot be carried over into
	// the next session.
	ErrSessionExpired = errs.ErrSessionExpired

	// ErrClosed is returned when the Session was closed before or during the call.
	ErrClosed = errs.ErrClosed

	// ErrMisuse is returned when the call can never succeed as it was written: a
	// malformed path, a size below one, unlocking what is not locked, parameters
	// that contradict those other processes use. Retrying it is pointless.
	ErrMisuse = errs.ErrMisuse

	// ErrUpgrade is returned when a holder of a read lock asks for the write lock
	// of the same path. Waiting would be a deadlock, so it is refused at once.
	ErrUpgrade = errs.ErrUpgrade

	// ErrBroken is returned when a party that others wait for gave up, died or
	// was reset away, so that the meeting will not take place.
	ErrBroken = errs.ErrBroken

	// ErrMaxHold is returned when a lease was given up because it was held for
	// longer than its WithMaxHold. It is a kind of loss:
	// errors.Is(ErrMaxHold, ErrLost) is true.
	ErrMaxHold = errs.ErrMaxHold

	// ErrNoLeader is returned when an election has no leader at the moment.
	ErrNoLeader = errs.ErrNoLeader

	// ErrStale is returned when a token is older than one already seen, which
	// means that its lease was superseded: whoever presents it no longer holds.
	ErrStale = errs.ErrStale
)

// Error is what the calls of this module return: which operation failed (Op, in lower case: "lock",
// "unlock", "connect" ...), on which path (Path, empty if it was about none), and why (Err, never nil
// in an Error returned by this module). The why is reached with errors.Is and errors.As.
//
// Its text is "zksync: <op> <path>: <reason>" on one line. A path that is unprintable or very long is
// quoted and shortened there; Path keeps it whole.
type Error = errs.Error

// Ambiguous reports whether err leaves it unknown that the servers applied the
// request: it was sent, and the connection ended before the reply came. A call
// that failed unambiguously, or with an err of nil, returns false: what it
// reports is what happened.
func Ambiguous(err error) bool { return errs.Ambiguous(err) }
