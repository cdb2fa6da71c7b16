package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zksync"
)

// closeLimit bounds the goodbye to the servers. A session that could not be ended in this
// time ends by itself when it expires.
const closeLimit = 2 * time.Second

var (
	errUnreachable = errors.New("servers unreachable")
	errNotInTime   = errors.New("not in time")
)

// target names the servers: those that were given or the local default.
func (a *app) target() string {
	if a.servers == "" {
		return defaultServers
	}
	return a.servers
}

// timeoutGiven reports whether --timeout was on the command line.
func timeoutGiven(cmd *cobra.Command) bool { return cmd.Flags().Changed("timeout") }

// connect opens a session, for which it takes at most limit; zero means as long as ctx
// allows. Errors are ready to be reported.
func (a *app) connect(ctx context.Context, limit time.Duration, opts ...zksync.Option) (*zksync.Session, error) {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, limit, errUnreachable)
	}
	defer cancel()
	opts = append([]zksync.Option{zksync.WithTimeout(a.timeout.value())}, opts...)
	s, err := zksync.Connect(bounded, a.target(), opts...)
	if err == nil {
		return s, nil
	}
	if bounded.Err() != nil {
		return nil, a.contextError(context.Cause(bounded), limit, lastReason(err))
	}
	return nil, a.sessionError(err)
}

// lastReason finds in an error of Connect why the last attempt failed, or returns "".
func lastReason(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf(" (%s: %s)", dns.Name, dns.Err)
	case errors.As(err, &errno):
		return fmt.Sprintf(" (%v)", errno)
	}
	return ""
}

// contextError words the cause with which a context ended; why may say more about
// unreachable servers.
func (a *app) contextError(cause error, limit time.Duration, why string) error {
	var i *interruption
	switch {
	case errors.As(cause, &i):
		return exitWith(i.exitCode(), "%v", i)
	case errors.Is(cause, errUnreachable):
		return a.unreachable(limit, why)
	}
	return failure("%v", cause)
}

func (a *app) unreachable(limit time.Duration, why string) error {
	return failure("cannot reach %s within %v%s: is a server running there? "+
		"Start one with \"menagerie serve\" or name yours with --servers", a.described(), limit, why)
}

// described is target, with a hint when nobody chose it.
func (a *app) described() string {
	if a.servers == "" {
		return defaultServers + " (the default, as neither --servers nor " + serversEnv + " is given)"
	}
	return a.servers
}

// sessionError words an error of zksync. Misuse that got this far was on the command line.
func (a *app) sessionError(err error) error {
	if errors.Is(err, zksync.ErrMisuse) {
		return usage("%s", forPeople(err))
	}
	return failure("%s: %s", a.target(), forPeople(err))
}

// forPeople is the text of an error without the package prefixes, which tell a Go
// programmer where it came from and a user of the command nothing.
func forPeople(err error) string {
	s := strings.TrimSuffix(err.Error(), ": "+zksync.ErrMisuse.Error())
	return strings.NewReplacer("zksync: ", "", "zkconn: ", "").Replace(s)
}

// goodbye ends the session, in bounded time whatever the servers do. If the connection is
// down at this moment Close tries for a little: when a server comes back in time, what the
// session has on the servers need not wait for the session to expire.
func goodbye(s *zksync.Session) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Close() // a session that cannot be ended now expires
	}()
	select {
	case <-done:
	case <-time.After(closeLimit):
	}
}

// endSignals are the signals that ask a command to end.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// signalContext returns a context that the first of the end signals cancels, with an
// interruption as its cause. A signal that was ignored when the process started (nohup)
// stays ignored.
func signalContext(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	notify(signals, endSignals...)
	stopped := make(chan struct{})
	go func() {
		select {
		case sig := <-signals:
			cancel(&interruption{signal: sig})
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel(nil)
	}
}

// notify is signal.Notify without the signals that are ignored.
func notify(c chan<- os.Signal, wanted ...os.Signal) {
	for _, sig := range wanted {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}
