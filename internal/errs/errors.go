// Package errs has the errors that the calls of this module return. Package zksync gives them to
// users under the same names, and says there what they mean; every other package of the module takes them from here.
package errs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// The reasons, as package zksync documents them.
var (
	ErrNotAcquired    = errors.New("zksync: not acquired")
	ErrLost           = errors.New("zksync: lease lost")
	ErrReleased       = errors.New("zksync: lease released")
	ErrSessionExpired = errors.New("zksync: zookeeper session expired")
	ErrClosed         = errors.New("zksync: session closed")
	ErrMisuse         = errors.New("zksync: misuse")
	ErrUpgrade        = errors.New("zksync: a read lock cannot be upgraded to a write lock")
	ErrBroken         = errors.New("zksync: broken")
	ErrNoLeader       = errors.New("zksync: no leader")
	ErrStale          = errors.New("zksync: stale token")

	// ErrNotFound is an fs.ErrNotExist, too.
	ErrNotFound = Kind("zksync: not found", fs.ErrNotExist)

	// ErrMaxHold is an ErrLost, too.
	ErrMaxHold = Kind("zksync: lease held longer than its maximum", ErrLost)
)

// kindOf is a sentinel that is also another one. It is used by pointer only,
// so that it compares like any other sentinel.
type kindOf struct {
	text string
	of   error
}

// Kind makes a sentinel that is also the sentinel of.
func Kind(text string, of error) error { return &kindOf{text, of} }

func (k *kindOf) Error() string { return k.text }

func (k *kindOf) Unwrap() error { return k.of }

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
		text += " " + ShowPath(e.Path)
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

// Wrap names the call that failed, unless err is named already; nil stays nil.
func Wrap(op, path string, err error) error {
	if err == nil { // first, because named is allocated
		return nil
	}
	if named := (*Error)(nil); errors.As(err, &named) {
		return err
	}
	return &Error{Op: op, Path: path, Err: err}
}

// MarkAmbiguous marks err, keeping its chain; nil stays nil.
func MarkAmbiguous(err error) error {
	if err == nil {
		return nil
	}
	return &ambiguousError{err: err}
}

// InDoubt marks err as ambiguous if there is doubt, unless it is marked.
func InDoubt(err error, doubt bool) error {
	if doubt && !Ambiguous(err) {
		return MarkAmbiguous(err)
	}
	return err
}

// SameDoubt is now, the error for the caller, marked as ambiguous if err is, with which the attempt ended.
func SameDoubt(err, now error) error {
	if Ambiguous(err) {
		return MarkAmbiguous(now)
	}
	return now
}

// Settled is err, the error of a function of the user, for a call that is known to have changed nothing: it is not ambiguous
// because that function met something that is.
func Settled(err error) error {
	if Ambiguous(err) {
		return &settledError{err}
	}
	return err
}

// settledError has its error in errors.Is and errors.As, but not for Ambiguous.
type settledError struct{ err error }

func (s *settledError) Error() string        { return s.err.Error() }
func (s *settledError) Is(target error) bool { return errors.Is(s.err, target) }
func (s *settledError) As(target any) bool   { return errors.As(s.err, target) }

func (a *ambiguousError) Error() string {
	return a.err.Error() + " (it is unknown whether the servers applied it)"
}

func (a *ambiguousError) Unwrap() error { return a.err }

// Ambiguous is what the function [Ambiguous] looks for; errors of other packages have it too.
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

// ErrNoSession is the reason of a call on a primitive that was made with a nil session.
var ErrNoSession = fmt.Errorf("%w: a nil Session; open one with Connect", ErrMisuse)

// Unmade is the panic of a method of a zero or nil value: what is "a Mutex", and constructor makes one.
func Unmade(what, constructor string) error {
	return fmt.Errorf("%w: %s without a session: make it with %s", ErrMisuse, what, constructor)
}

// OfContext is the error of an ended context such that errors.Is finds context.Canceled or
// context.DeadlineExceeded even if it ended with a cause of its own. It also says what the
// call waited for, and why the newest attempt failed, if the context has a trail.
func OfContext(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if !errors.Is(cause, err) {
		cause = fmt.Errorf("%w: %w", err, cause)
	}
	return After(At(cause, Where(ctx, 0)), LastOf(ctx))
}
