package zkgroup

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// AssignOption is an option of [Group.Assign].
type AssignOption func(*assignment)

// WithItemErrors calls f for each run of an item that has failed at this member, in the item's goroutine. The
// attempts count from 1, and go on when the item moves.
func WithItemErrors(f func(item string, attempt int, err error)) AssignOption {
	return func(a *assignment) { a.onError = f }
}

// WithShare calls f with the items of this member when they are divided, and after each change; the lease of
// an item may come later. f must not block, as Close of the session and Leave would: they wait for f.
func WithShare(f func(items []string)) AssignOption {
	return func(a *assignment) { a.onShare = f }
}

// WithUntilDone has Assign return nil as soon as all items are done, here or elsewhere. The round is kept: a
// process that calls Assign with the same items later continues it, and returns at once if it is done. Other
// items begin a new round once no member works on this one. See [WithKeep].
func WithUntilDone() AssignOption {
	return func(a *assignment) { a.until = true }
}

// WithKeep sets how long a round of WithUntilDone is kept after its newest change, by the servers' clock. The default is 1 hour. After
// that the next Assign begins it again, if no member works on it.
func WithKeep(d time.Duration) AssignOption {
	return func(a *assignment) {
		if a.keep = d; d <= 0 {
			a.refuse("WithKeep(%v): it must be positive", d)
		}
	}
}

// WithConcurrency has at most n items run at a time at this member. The others of its share wait without
// their leases. They begin in the order of the list.
func WithConcurrency(n int) AssignOption {
	return func(a *assignment) {
		if n < 1 {
			a.refuse("WithConcurrency(%d): it must be at least 1", n)
			return
		}
		a.places = &places{free: n}
	}
}

// WithSettle moves items only when d has passed without a change of the members that are in an Assign, or 5d
// since the oldest change that no division has followed: the items of a dead member wait no longer. Members that
// have been there for less than d do not count then. A member that begins alone does not wait. Use the same d
// at all members.
func WithSettle(d time.Duration) AssignOption {
	return func(a *assignment) {
		if a.settle = d; d < 0 {
			a.refuse("WithSettle(%v): it must not be negative", d)
		}
	}
}

// refuse has Assign fail.
func (a *assignment) refuse(format string, args ...any) {
	if a.bad == nil {
		a.bad = errs.Misuse(format, args...)
	}
}

// Stop makes an error that ends the Assign whose function returns it. Assign then returns err, which may be
// nil, once all other runs here have ended. The item is not done. Other members continue.
func Stop(err error) error { return &stopped{err} }

// stopped is the error of Stop.
type stopped struct{ err error }

func (s *stopped) Error() string {
	if s.err == nil {
		return "zkgroup: stop"
	}
	return s.err.Error()
}

func (s *stopped) Unwrap() error { return s.err }
