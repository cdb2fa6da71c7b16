// Package errs has the errors that the calls of this module return. Package zksync gives them to
// users under the same names, and says there what they mean; every other package of the module takes them from here.
package errs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
	ErrDeadlock       = errors.New("zksync: deadlock")

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

// Error is zksync.Error, with the same fields. The packages below zksync make errors with [Wrap], which returns a *zksync.Error.
type Error struct {
	Package string
	Op      string
	Path    string
	Err     error
}

// Public and AsPublic convert between *Error and *zksync.Error. Package zksync sets them when it is initialized.
var (
	// Public is e as calls return it.
	Public = func(e *Error) error { return e }
	// AsPublic is err if calls return it.
	AsPublic = func(err error) (*Error, bool) { e, ok := err.(*Error); return e, ok }
)

// Error returns "<package>: <op> <path>: <reason>" on one line. The prefix that the
// reason carries by itself is not repeated, and a path that is unprintable, very long or
// not absolute is quoted and shortened.
func (e *Error) Error() string {
	pkg := cmp.Or(e.Package, "zksync") + ": "
	text := pkg + e.Op
	switch {
	case e.Path == "":
	case e.Path[0] != '/' && e.Op != "connect": // which has servers there
		text += " " + Quote(e.Path)
	default:
		text += " " + ShowPath(e.Path)
	}
	if e.Err == nil {
		return text
	}
	if text != pkg {
		text += ": "
	}
	return text + strings.TrimPrefix(strings.TrimPrefix(e.Err.Error(), "zksync: "), pkg)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// ambiguousError marks an error after which it is unknown whether the servers
// applied the request.
type ambiguousError struct{ err error }

// Wrap names the call of a package that failed, unless err is named already; nil stays nil.
func Wrap(pkg, op, path string, err error) error {
	if err == nil || named(err) != nil {
		return err
	}
	return Public(&Error{pkg, op, path, err})
}

// named is the first error in err's tree that names its call; nil if there is none.
func named(err error) *Error {
	if e, ok := AsPublic(err); ok {
		return e
	}
	for _, each := range under(err) {
		if e := named(each); e != nil {
			return e
		}
	}
	return nil
}

// under has the errors that err wraps, but not the error that a [Settled] one has.
func under(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// Reason is the reason of err, which another call has named.
func Reason(err error) error {
	if e := named(err); e != nil {
		return e.Err
	}
	return err
}

// Misuse is an error that wraps ErrMisuse: the reason, and the word misuse at its end.
func Misuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fmt.Errorf(format, args...), misuse)
}

var misuse = Kind("misuse", ErrMisuse)

// Broken is an error that wraps ErrBroken: what is broken, such as "the barrier", and why.
func Broken(what, format string, args ...any) error {
	return fmt.Errorf("%w: %w", Kind(what+" is broken", ErrBroken), fmt.Errorf(format, args...))
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

// Settled is err, the error of a function or the cause of a context of the user, for a call that is known to have changed
// nothing: the call is not ambiguous, even if err is. The name in err, if it has one, is another call's.
func Settled(err error) error {
	if Ambiguous(err) || named(err) != nil {
		return &settledError{err}
	}
	return err
}

// settledError has its error in errors.Is and errors.As, but neither for Ambiguous nor for its name.
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
	return slices.ContainsFunc(under(err), Ambiguous)
}

// ErrNoSession is the reason of a call on a primitive that was made with a nil session.
var ErrNoSession = Misuse("a nil Session; open one with Connect")

// Unmade is the panic of a method of a zero or nil value: what is "a Mutex", and constructor of the package makes one.
func Unmade(pkg, what, constructor string) error {
	return Wrap(pkg, "", "", Misuse("%s without a session: make it with %s", what, constructor))
}

// OfContext is the error of an ended context such that errors.Is finds context.Canceled or
// context.DeadlineExceeded even if it ended with a cause of its own. It also says what the
// call waited for, and why the newest attempt failed, if the context has a trail. It is for the caller alone: the cause may
// be an answer of the servers to another call, so below that an ended context is ctx.Err().
func OfContext(ctx context.Context) error {
	err, cause := ctx.Err(), Settled(context.Cause(ctx))
	if !errors.Is(cause, err) {
		cause = fmt.Errorf("%w: %w", err, cause)
	}
	return After(At(cause, Where(ctx, 0)), LastOf(ctx))
}
