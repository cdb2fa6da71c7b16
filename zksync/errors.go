package zksync

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinel errors. Calls wrap them in an [*Error] that names the operation and
// the path, so compare with errors.Is, never with ==. Errors of a context
// (context.Canceled, context.DeadlineExceeded) are reachable the same way.
var (
	// ErrNotAcquired is returned when a Try form finds that somebody else is
	// ahead in the queue. Nothing is left behind on the servers.
	ErrNotAcquired = errors.New("zksync: not acquired")

	// ErrLost is returned when a lease can no longer be proved to be held: its
	// session was lost, its node was removed by somebody else, or it was given up
	// because of a bound on the hold. It is also the cause of the lease's context.
	// Another process may hold the same path from then on.
	ErrLost = errors.New("zksync: lease lost")

	// ErrReleased is returned when a lease is used after its own Unlock. It is
	// also the cause of the lease's context then.
	ErrReleased = errors.New("zksync: lease released")

	// ErrSessionExpired is returned when the ZooKeeper session in which a call
	// began ended before the call did, and the call cannot be carried over into
	// the next session.
	ErrSessionExpired = errors.New("zksync: zookeeper session expired")

	// ErrClosed is returned when the Session was closed before or during the call.
	ErrClosed = errors.New("zksync: session closed")

	// ErrMisuse is returned when the call can never succeed as it was written: a
	// malformed path, a size below one, unlocking what is not locked, parameters
	// that contradict those other processes use. Retrying it is pointless.
	ErrMisuse = errors.New("zksync: misuse")

	// ErrUpgrade is returned when a holder of a read lock asks for the write lock
	// of the same path. Waiting would be a deadlock, so it is refused at once.
	ErrUpgrade = errors.New("zksync: a read lock cannot be upgraded to a write lock")

	// ErrBroken is returned when a party that others wait for gave up, died or
	// was reset away, so that the meeting will not take place.
	ErrBroken = errors.New("zksync: barrier broken")

	// ErrMaxHold is returned when a lease was given up because it was held for
	// longer than its WithMaxHold. It is a kind of loss:
	// errors.Is(ErrMaxHold, ErrLost) is true.
	ErrMaxHold error = &kindOfLoss{text: "zksync: lease held longer than its maximum"}

	// ErrNoLeader is returned when an election has no leader at the moment.
	ErrNoLeader = errors.New("zksync: no leader")

	// ErrStale is returned when a token is older than one already seen, which
	// means that its lease was superseded: whoever presents it no longer holds.
	ErrStale = errors.New("zksync: stale token")
)

// kindOfLoss is a sentinel that is also an ErrLost. It is used by pointer only,
// so that it compares like any other sentinel.
type kindOfLoss struct{ text string }

func (k *kindOfLoss) Error() string { return k.text }

func (k *kindOfLoss) Unwrap() error { return ErrLost }

// Error is what the calls of this module return: which operation failed, on
// which path, and why. The why is reached with errors.Is and errors.As.
type Error struct {
	// Op is the operation, in lower case: "lock", "unlock", "connect" ...
	Op string
	// Path is the znode the operation was about, empty if it was about none.
	Path string
	// Err is the reason, never nil in an Error returned by this module.
	Err error
}

// Error returns "zksync: <op> <path>: <reason>" on one line. The prefix that the
// reason carries by itself is not repeated, and a path that is unprintable or
// very long is quoted and shortened; Path keeps it whole.
func (e *Error) Error() string {
	text := "zksync: " + e.Op
	if e.Path != "" {
		text += " " + showPath(e.Path)
	}
	if e.Err == nil {
		return text
	}
	return text + ": " + strings.TrimPrefix(e.Err.Error(), "zksync: ")
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// ambiguousError marks an error after which it is unknown whether the servers
// applied the request.
type ambiguousError struct{ err error }

// ambiguous marks err, keeping its chain; nil stays nil.
func ambiguous(err error) error {
	if err == nil {
		return nil
	}
	return &ambiguousError{err: err}
}

func (a *ambiguousError) Error() string {
	return a.err.Error() + " (it is unknown whether the servers applied it)"
}

func (a *ambiguousError) Unwrap() error { return a.err }

// Ambiguous is what [Ambiguous] looks for; other packages' errors have it too.
func (a *ambiguousError) Ambiguous() bool { return true }

// Ambiguous reports whether err leaves it unknown that the servers applied the
// request: it was sent, and the connection ended before the reply came. A call
// that failed unambiguously, or with an err of nil, returns false: what it
// reports is what happened.
func Ambiguous(err error) bool {
	// errors.As would stop at the first error that has the method. In a tree of
	// joined errors one certain failure must not hide an uncertain one.
	if a, ok := err.(interface{ Ambiguous() bool }); ok && a.Ambiguous() {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Ambiguous(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			if Ambiguous(each) {
				return true
			}
		}
	}
	return false
}

var errNoSession = fmt.Errorf("%w: a nil Session; open one with Connect", ErrMisuse)
