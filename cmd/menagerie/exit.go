package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes. Those of lock follow the shell (126, 127, 128+n) and sysexits (75 and 76,
// as flock users know the first).
const (
	exitFailure     = 1
	exitUsage       = 2
	exitRefused     = 3 // something is not what the command line says, and nothing was changed
	exitJobFailed   = 3 // of cron run-now: the job ran, and failed
	exitNoSuchPath  = 4
	exitNotObtained = 75
	exitLost        = 76
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // plus the number of the signal
)

// exitError is an error with its exit code. With a nil err nothing is printed, as when
// CMD failed and has said so itself.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func failure(format string, args ...any) error { return exitWith(exitFailure, format, args...) }

func usage(format string, args ...any) error { return exitWith(exitUsage, format, args...) }

// interruption is the cause of a context that a signal ended.
type interruption struct{ signal os.Signal }

func (i *interruption) Error() string {
	switch i.signal {
	case os.Interrupt:
		return "interrupted by SIGINT"
	case syscall.SIGTERM:
		return "interrupted by SIGTERM"
	case syscall.SIGHUP:
		return "interrupted by SIGHUP"
	}
	return fmt.Sprintf("interrupted (%v)", i.signal)
}

// exitCode is what a shell reports for a process that died from the signal.
func (i *interruption) exitCode() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitFailure
}

// interrupted returns the interruption that ended ctx, if one did.
func interrupted(ctx context.Context) (*interruption, bool) {
	var i *interruption
	ok := ctx.Err() != nil && errors.As(context.Cause(ctx), &i)
	return i, ok
}

// report prints err as one line and returns the exit code. An error without a code was
// made by cobra while it looked at the command line: a usage error.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	var coded *exitError
	if !errors.As(err, &coded) {
		coded = &exitError{code: exitUsage, err: flagError(err)}
	}
	if coded.err == nil {
		return coded.code
	}
	line := oneLine(coded.err.Error())
	if coded.code == exitUsage {
		line += fmt.Sprintf(" (see %q)", cmd.CommandPath()+" --help")
	}
	fmt.Fprintf(w, "menagerie: %s\n", line)
	return coded.code
}

// flagError puts an error of pflag into words. For an unknown flag pflag's own text repeats
// the argument, which may be a secret: a user may have written -auth=digest:me:secret.
func flagError(err error) error {
	var unknown interface {
		error
		GetSpecifiedName() string
		GetSpecifiedShortnames() string
	}
	var malformed interface {
		error
		GetSpecifiedFlag() string
	}
	switch {
	case errors.As(err, &malformed):
		return errors.New("bad syntax of a flag, want --name or --name=value")
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedShortnames()) > 1:
		return fmt.Errorf("unknown flag -%s: flags of more than one letter begin with two dashes", unknown.GetSpecifiedName())
	}
	return err
}

// oneLine puts an error text of a library on one line.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
