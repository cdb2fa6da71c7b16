package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// closeLimit bounds the end of the session. A session that could not be ended in this
// time ends when it expires.
const closeLimit = 2 * time.Second

var (
	errUnreachable = errors.New("servers unreachable")
	errNotInTime   = errors.New("not in time")
)

// patience limits a command's first attempts to connect; zero means as long as ctx
// allows. --wait also bounds connecting, unless there is a --connect-timeout.
func (a *app) patience(cmd *cobra.Command, wait time.Duration) time.Duration {
	if wait > 0 && !cmd.Flags().Changed("connect-timeout") {
		return 0
	}
	return a.connectTimeout.value()
}

// connect opens a session, for which it takes at most limit; zero means as long as ctx
// allows. Errors are ready to be reported.
func (a *app) connect(ctx context.Context, limit time.Duration, opts ...zksync.SessionOption) (*zksync.Session, error) {
	bounded, cancel := within(ctx, limit)
	defer cancel()
	log := a.teller()
	opts = append(append(a.options(), zksync.WithLogger(slog.New(log)), inside(os.Getenv(tokenEnv))), opts...)
	s, err := zksync.Connect(bounded, a.target(), opts...)
	if err == nil {
		log.connected()
		return s, nil
	}
	switch cause := context.Cause(bounded); {
	case errors.Is(cause, errNotInTime): // of which the caller says what it waited for
		return nil, errors.Join(cause, lastReason(err))
	case cause != nil:
		return nil, a.contextError(cause, limit, lastReason(err))
	}
	return nil, a.sessionError(err)
}

// inside has every entry say that its owner is the process that holds token, which runs this command inside its CMD.
func inside(token string) zksync.SessionOption {
	var held []node.Token
	if t, err := node.ParseToken(token); err == nil {
		held = append(held, t)
	}
	return session.ForSession(func(s *session.Settings) { s.Under = node.FormatUnder(held) })
}

// within bounds what needs the servers; zero is no bound.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, errUnreachable)
}

// lastReason finds in an error of Connect the error of the last attempt to connect. Connect wraps it
// together with the error of its context. It is nil if no attempt has failed.
func lastReason(err error) error {
	for err != nil {
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			if err = all[0]; len(all) > 1 {
				return all[len(all)-1]
			}
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return nil
		}
	}
	return nil
}

// contextError puts the cause with which a context ended into words; why may say more about
// unreachable servers.
func (a *app) contextError(cause error, limit time.Duration, why error) error {
	var i *interruption
	switch {
	case errors.As(cause, &i):
		return exitWith(i.exitCode(), "%v", i)
	case errors.Is(cause, errUnreachable):
		return a.unreachable(limit, why)
	}
	return failure("%v", cause)
}

func (a *app) unreachable(limit time.Duration, why error) error {
	if errors.Is(why, errUnreachable) { // that is no reason
		why = nil
	}
	text := fmt.Sprintf("cannot reach %s within %v", a.described(), limit) + because(why)
	switch {
	case why != nil && !nobodyThere(why):
	case a.servers == "":
		text += `: is a server running there? Start one with "menagerie serve" or name yours with --servers`
	default:
		text += ": is a server running there?"
	}
	return failure("%s", text)
}

// because is a reason of lastReason's, for the end of a sentence.
func because(why error) string {
	if why == nil {
		return ""
	}
	text := forPeople(why)
	for _, lead := range []string{"the last attempt failed: ", "the last attempts failed: "} {
		text = strings.TrimPrefix(text, lead)
	}
	return " (" + text + ")"
}

// nobodyThere reports whether why means that no server is running at any of the addresses. With any other reason there
// is a server, or a name is wrong, and the reason says that.
func nobodyThere(why error) bool {
	if all, ok := why.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !nobodyThere(err) })
	}
	return errors.Is(why, syscall.ECONNREFUSED)
}

// sessionError puts an error of zksync into words. Misuse comes from the command line.
func (a *app) sessionError(err error) error {
	if errors.Is(err, zksync.ErrMisuse) {
		return usage("%s", forPeople(err))
	}
	return failure("%s: %s", a.target(), forPeople(err))
}

// goodbye ends the session, in bounded time whatever the servers do. Without a connection
// Close tries for a while: if a server comes back in time, the session's nodes are removed at
// once, and not only when it expires.
func goodbye(s *zksync.Session) { _ = s.Close() } // a session that cannot be ended now expires
