package zkotel

import (
	"context"
	"errors"
	"slices"

	"github.com/go-menagerie/menagerie/zksync"
)

// How an acquisition ends: lock.outcome.
const (
	granted     = "granted"
	notAcquired = "not_acquired"
	canceled    = "canceled" // by the end of its context
	lost        = "lost"     // with its session
	failed      = "error"
)

// outcome is how an acquisition ended. The errors of sessions come before the errors of contexts, because a time limit of the
// network inside them looks like a context's.
func outcome(err error) string {
	switch {
	case err == nil:
		return granted
	case is(err, zksync.ErrNotAcquired):
		return notAcquired
	case is(err, zksync.ErrLost, zksync.ErrSessionExpired):
		return lost
	case is(err, zksync.ErrClosed, zksync.ErrMisuse, zksync.ErrDeadlock, zksync.ErrUpgrade, zksync.ErrBroken):
		return failed
	case is(err, context.Canceled, context.DeadlineExceeded):
		return canceled
	}
	return failed
}

func is(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// expected reports whether an outcome is no fault: the lock was free or taken, or the caller did not want it any more. A deadline
// that passes in a wait is what users look for in traces.
func expected(outcome string, err error) bool {
	return outcome == granted || outcome == notAcquired || outcome == canceled && errors.Is(err, context.Canceled)
}

// How a hold ends: lock.end. It may also be lost.
const (
	released = "released"
	revoked  = "revoked"
	maxHold  = "max_hold"
)

// loss is the end that a reason of a loss means.
func loss(reason string) string {
	switch reason {
	case zksync.ReasonRevoked:
		return revoked
	case zksync.ReasonMaxHold:
		return maxHold
	}
	return lost
}
