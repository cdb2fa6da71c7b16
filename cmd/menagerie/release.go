package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/bench/terminal"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/removal"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// releaseOptions is the command line of release.
type releaseOptions struct {
	path, node, reason string
	holder, yes        bool
}

func (a *app) releaseCommand() *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release PATH (--node NAME | --holder) [--yes] [--reason TEXT]",
		Short: "Remove a holder or a waiter that does not leave",
		Long: `Removes one contender of the lock, read-write lock, semaphore or election PATH: the only holder, or the holder
or waiter whose node ls -l shows. It prints which process that is, since when, and its token. On a terminal
it asks; elsewhere it removes nothing without --yes. It removes only what it has shown: if that has left
or was granted meanwhile, it refuses.

The next contender is granted at once (or after the lock delay). The removed holder is not stopped. Its lease
is lost: "menagerie lock" ends its CMD, a program sees ErrLost, with TEXT as the reason. Until
then both may write: only a storage that refuses the smaller token prevents that. A removed
waiter of this library queues again at the tail. A durable lock is given up by "menagerie unhold --break".

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  removed
    1  servers unreachable for --connect-timeout, or another failure; the message says if it may be removed
    2  wrong command line
    3  refused, and nothing was removed: no --yes, another answer than y, several holders, the node is gone,
       PATH is something else or may not be read
    4  no process holds or waits, or PATH does not exist
  130  interrupted (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie lock /a -- sleep 60 & until menagerie release /a --holder --yes; do sleep 1; done
  menagerie lock /b -- sleep 60 & until menagerie release /b --holder --yes --reason "it hangs"; do sleep 1; done`,
		Args: onePath,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.node, "node", "", "the `NAME` or path of the contender's node, as ls -l shows it")
	flags.BoolVar(&o.holder, "holder", false, "the holder; if there are several, they are named and none is removed")
	flags.BoolVar(&o.yes, "yes", false, "do not ask")
	flags.StringVar(&o.reason, "reason", "", "a `TEXT` for the holder that is removed; at most 200 characters")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.holder == (o.node != "") {
			return usage("want one of --node NAME and --holder")
		}
		o.path = args[0]
		return a.release(cmd.Context(), o)
	}
	return cmd
}

// release shows a contender, asks, and removes it.
func (a *app) release(ctx context.Context, o releaseOptions) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	s, err := a.connect(ctx, a.connectTimeout.value(), zksync.WithName(userName()))
	if err != nil {
		return err
	}
	defer goodbye(s)
	var found *tree.Object
	var row tree.Row
	err = a.releasing(ctx, o.path, func(ctx context.Context) error {
		return tree.Looking(ctx, s, func(ctx context.Context, l *tree.Look) (err error) {
			found, row, err = removal.Find(ctx, l, o.path, o.node)
			return err
		})
	})
	if err != nil {
		return err
	}
	asks := !o.yes && terminal.Is(os.Stdin) && terminal.Is(os.Stderr)
	w := a.stdout
	if asks {
		w = a.stderr
	}
	if _, err := fmt.Fprintln(w, whom(found, row, time.Now())); err != nil {
		return outputError(err)
	}
	switch {
	case asks:
		err = a.confirm(ctx, os.Stdin)
	case !o.yes:
		err = exitWith(exitRefused, "refused: without a terminal give --yes; nothing was removed")
	}
	if err != nil {
		return err
	}
	var told bool
	err = a.releasing(ctx, o.path, func(ctx context.Context) (err error) {
		told, err = removal.Remove(ctx, s, removal.Seen{Path: o.path, Node: row.Node, Token: row.Token, State: row.State}, o.reason)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, outcome(row, told))
	return outputError(err)
}

// releasing calls f, which the servers must answer for --connect-timeout, and puts its error into words.
func (a *app) releasing(ctx context.Context, path string, f func(context.Context) error) error {
	bounded, cancel := within(ctx, a.connectTimeout.value())
	defer cancel()
	err := f(bounded)
	var refused *removal.Refusal
	switch {
	case err == nil:
		return nil
	case zksync.Ambiguous(err):
		code := exitFailure
		if i, ok := interrupted(ctx); ok {
			code = i.exitCode()
		}
		return exitWith(code, "it may have been removed, the servers' answer is missing: see menagerie ls -l %s: %s", path, forPeople(err))
	case errors.As(err, &refused) && refused.Nobody:
		return exitWith(exitNoSuchPath, "%v", refused)
	case errors.As(err, &refused):
		return exitWith(exitRefused, "refused: %v; nothing was removed", refused)
	case bounded.Err() != nil:
		return a.contextError(context.Cause(bounded), a.connectTimeout.value(), nil)
	}
	return a.sessionError(err)
}

// confirm asks on the terminal, and returns nil for yes.
func (a *app) confirm(ctx context.Context, keyboard io.Reader) error {
	fmt.Fprint(a.stderr, "Remove it? [y/N] ")
	answer := make(chan string, 1)
	go func() { // as long as the process, if no line comes
		line, err := bufio.NewReader(keyboard).ReadString('\n')
		if err != nil { // the end of the input is no answer
			fmt.Fprintln(a.stderr)
			line = ""
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return a.contextError(context.Cause(ctx), 0, nil)
	case text := <-answer:
		if text == "y" || text == "yes" {
			return nil
		}
		return exitWith(exitRefused, "refused: nothing was removed")
	}
}

// whom says which contender is to be removed, and what follows from that.
func whom(o *tree.Object, row tree.Row, now time.Time) string {
	holders, waiters := o.In(zksync.Held), o.In(zksync.Waiting)
	who := wording.WhoNamed(node.Owner(row.Owner), tree.SessionID(row.Session))
	since := fmt.Sprintf(" since %s, token %s", age(row.Time(), now, false), tree.Dash(row.Token))
	if row.State != zksync.Held {
		place := 1 + slices.IndexFunc(waiters, func(r tree.Row) bool { return r.Node == row.Node })
		text := fmt.Sprintf("%s waits for %s%s, %s; removing it takes its place: a waiter of this library queues again at the tail.",
			who, o.Path, since, wording.InLine(place))
		if row.Permits > 0 {
			text += "\nIf permits were taken away (sem --resize), it may hold the permits that it was granted before."
		}
		return text
	}
	text := o.Path + " is held by " + who + since
	switch {
	case len(holders) > 1:
		text += wording.More(int64(len(holders)-1), "other holder stays", "other holders stay")
	case len(waiters) > 0:
		text += "; removing it lets the next one in: " + waiters[0].Who()
	default:
		text += "; no process waits"
	}
	return text + ".\nThe holder is not stopped: it may still write (its storage must check the token)."
}

// outcome says what was removed, and whether the holder knows.
func outcome(row tree.Row, told bool) string {
	switch {
	case row.State != zksync.Held:
		return "removed " + row.Who() + " from the queue"
	case told:
		return "removed " + row.Who() + ", which was notified of the reason, or has ended"
	}
	return "removed " + row.Who() + ", which has not confirmed that: it is cut off, stopped, or uses another library"
}

// userName is the name of the user who runs the command; "" if unknown.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
