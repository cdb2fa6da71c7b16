package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
)

// holdOptions is the command line of hold.
type holdOptions struct {
	lockOptions
	owner, note string
}

func (a *app) holdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hold PATH --owner NAME [--note TEXT] [--wait D | --try] [--grace D] [-- CMD ARGS...]",
		Short: "Take a lock that lasts until its owner gives it up",
		Long: `Takes the durable lock PATH for the owner NAME. The lock outlives this command, its session and the
machine: no timeout frees it. If NAME holds it already, the command continues that hold, with the same
token.

Without CMD it prints the token, and the lock stays held until "menagerie unhold PATH --owner NAME".

With CMD it runs CMD while it holds. Exit code 0 of CMD frees the lock. If CMD fails, or this command
is killed, NAME still holds: run the command again when the cause is mended, or unhold it.
CMD gets MENAGERIE_PATH and MENAGERIE_TOKEN in its environment. The token is a fencing token:
have your storage refuse a smaller one than the greatest it has seen. CMD runs in a process group
of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the group.
If another command breaks the hold (unhold --break), the group gets SIGTERM, and SIGKILL if it has not
ended after --grace.

Without --servers the command uses ` + defaultServers + `.

Exit codes: that of CMD (128+n if signal n ended it), or
    0  held now (without CMD)
    1  servers unreachable for --connect-timeout, or another failure; CMD did not run
    2  wrong command line; CMD did not run
   75  held by another owner (--try, or at the end of --wait), or another process of NAME has it open;
       CMD did not run
   76  the hold was broken while CMD ran, whatever the exit code of CMD was
  126  CMD cannot be executed
  127  CMD was not found
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie hold /migration --owner release-42 --note "see ticket 1234"
  menagerie unhold /migration --owner release-42
  menagerie hold /migration --owner release-43 --wait 1m -- sh -c 'echo "token $MENAGERIE_TOKEN"'`,
	}
	given := a.waitFlags(cmd)
	var o holdOptions
	cmd.Flags().StringVar(&o.owner, "owner", "", "the `NAME` for which the lock is held; callers with the same name are the same owner")
	cmd.Flags().StringVar(&o.note, "note", "", "a `TEXT` that ls shows while it is held")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		owner, note := o.owner, o.note
		o := holdOptions{lockOptions: given(), owner: owner, note: note}
		if cmd.ArgsLenAtDash() < 0 && len(args) <= 1 { // without CMD
			if err := onePath(cmd, args); err != nil {
				return err
			}
			if o.wait > 0 && o.try {
				return usage("--wait and --try exclude each other: choose one")
			}
			o.path, o.patience = args[0], a.patience(cmd, o.wait)
		} else if o.lockOptions, err = a.lockOptions(cmd, args, o.lockOptions); err != nil {
			return err
		}
		if o.owner == "" {
			return usage("--owner is missing: a name that stays the same after a restart")
		}
		return a.runHold(cmd.Context(), o)
	}
	return cmd
}

// runHold is the whole of hold.
func (a *app) runHold(ctx context.Context, o holdOptions) error {
	var program string
	name := "hold"
	if len(o.argv) > 0 {
		var err error
		if program, err = child.Resolve(o.argv[0]); err != nil {
			return cannotRun(err)
		}
		name = filepath.Base(o.argv[0])
	}
	return a.waiting(ctx, o.lockOptions, name, func(w *vigil) error {
		m := zkdurable.NewMutex(w.s, o.path)
		hold, err := take(w.ctx, m, o)
		if errors.Is(err, zksync.ErrNotAcquired) {
			return exitWith(exitNotObtained, "%s is not free%s", o.path, heldDurably(w.ctx, m))
		}
		if err != nil {
			return err
		}
		if o.note != "" {
			if err := hold.SetNote(w.ctx, o.note); err != nil {
				return err
			}
		}
		if err := w.end(); err != nil {
			return err // the owner holds, and the message says that it was interrupted
		}
		if program == "" {
			_, err := fmt.Fprintln(a.stdout, hold.Token()) // the owner holds, and the same command prints it again
			return outputError(err)
		}
		return a.runHeld(hold, o, program, w)
	})
}

// take gets the hold: a new one, or the one that the owner has.
func take(ctx context.Context, m *zkdurable.Mutex, o holdOptions) (*zkdurable.Hold, error) {
	holder, err := m.Holder(ctx)
	if err != nil {
		return nil, err
	}
	if holder.Owner == o.owner {
		return m.Resume(ctx, o.owner)
	}
	if o.try {
		return m.TryLock(ctx, o.owner)
	}
	return m.Lock(ctx, o.owner)
}

// runHeld runs CMD, and frees the lock if CMD succeeds.
func (a *app) runHeld(hold *zkdurable.Hold, o holdOptions, program string, w *vigil) error {
	env := append(os.Environ(), tokenEnv+"="+hold.Token().String(), pathEnv+"="+o.path)
	valid := func() bool { return hold.Err() == nil }
	c, err := child.Start(program, o.argv, env, valid)
	if err != nil {
		return cannotRun(err)
	}
	lost := func(while string) error {
		text := fmt.Sprintf("lost %s on %s %s: %s", o.path, a.target(), while, forPeople(hold.Err()))
		if by, why := hold.Broken(); by != "" {
			text = fmt.Sprintf("the hold of %s on %s was broken %s, by %s: %s", o.path, a.target(), while, by, why)
		}
		return exitWith(exitLost, "%s", text)
	}
	if a.attend(c, hold.Done(), valid, w.signals, o.grace) {
		return lost("while " + o.argv[0] + " was running")
	}
	if code := c.ExitCode(); code != 0 {
		fmt.Fprintf(a.stderr, "menagerie: %s is still held by %s: run the command again, or menagerie unhold %s --owner %s\n", o.path, o.owner, o.path, o.owner)
		return &exitError{code: code}
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(o.patience, time.Second))
	defer cancel()
	switch err := hold.Unlock(ctx); {
	case errors.Is(err, zksync.ErrLost):
		return lost("before it could be freed")
	case err != nil:
		return failure("%s has succeeded, but %s could not be freed: %s; menagerie unhold %s --owner %s", o.argv[0], o.path, forPeople(err), o.path, o.owner)
	}
	return nil
}

// heldDurably says who holds: ": held by release-42 since ...".
func heldDurably(ctx context.Context, m *zkdurable.Mutex) string {
	h, err := m.Holder(ctx)
	if err != nil || h.Owner == "" {
		return ""
	}
	text := fmt.Sprintf(": held by %s since %s", h.Owner, h.Since.Local().Format(time.DateTime))
	if h.Note != "" {
		text += " (" + shorten(h.Note) + ")"
	}
	if h.Alive {
		return text + ", a process of which has it open"
	}
	return text + ", no process of which has it open"
}

func (a *app) unholdCommand() *cobra.Command {
	var owner, why, token string
	cmd := &cobra.Command{
		Use:   "unhold PATH (--owner NAME | --break WHY [--token TOKEN])",
		Short: "Give up a lock of hold, or break it",
		Long: `Frees the durable lock PATH that "menagerie hold" has taken.

--owner NAME gives up the hold of NAME. It refuses if another owner holds, or if a living process has the
hold open. --break WHY frees it whoever holds it, whether or not a process has it open. That process
is told, and so is the next holder: by whom ($USER), and WHY. With --token it refuses if that hold is no
longer the present one; without, it breaks the hold that it sees.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  free now
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line
    3  refused: another owner holds it, a process has it open, or the hold of --token does not last any more
    4  nobody holds it`,
		Example: `  menagerie hold /migration --owner release-42
  menagerie unhold /migration --owner release-42
  menagerie hold /migration --owner release-43
  menagerie unhold /migration --break "release-43 was cancelled"`,
		Args: onePath,
	}
	flags := cmd.Flags()
	flags.StringVar(&owner, "owner", "", "the `NAME` that gives up its hold")
	flags.StringVar(&why, "break", "", "free it whoever holds it, because of `WHY`")
	flags.StringVar(&token, "token", "", "with --break: only the hold with this `TOKEN`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var only zksync.Token
		switch {
		case (owner == "") == (why == ""):
			return usage("give one of --owner NAME and --break WHY")
		case token != "" && why == "":
			return usage("--token belongs to --break")
		case token != "":
			var err error
			if only, err = zksync.ParseToken(token); err != nil {
				return usage("--token %q is no token, want what hold has printed", shorten(token))
			}
		}
		o := lockOptions{path: args[0], try: true, patience: a.patience(cmd, 0)}
		return a.waiting(cmd.Context(), o, cmp.Or(os.Getenv("USER"), "unhold"), func(w *vigil) error {
			m := zkdurable.NewMutex(w.s, o.path)
			if owner != "" {
				return unhold(w.ctx, m, o.path, owner)
			}
			return breakHold(w.ctx, m, o.path, only, why)
		})
	}
	return cmd
}

// unhold gives up the hold of an owner.
func unhold(ctx context.Context, m *zkdurable.Mutex, path, owner string) error {
	h, err := m.Holder(ctx)
	switch {
	case err != nil:
		return err
	case h.Owner == "":
		return exitWith(exitNoSuchPath, "nobody holds %s", path)
	case h.Owner != owner, h.Alive:
		return exitWith(exitRefused, "refused%s", heldDurably(ctx, m))
	}
	hold, err := m.Resume(ctx, owner)
	if errors.Is(err, zksync.ErrNotAcquired) { // it has changed since
		return exitWith(exitRefused, "refused%s", heldDurably(ctx, m))
	}
	if err != nil {
		return err
	}
	return hold.Unlock(ctx)
}

// breakHold frees the lock whoever holds it.
func breakHold(ctx context.Context, m *zkdurable.Mutex, path string, only zksync.Token, why string) error {
	if only.IsZero() {
		h, err := m.Holder(ctx)
		if err != nil {
			return err
		}
		if h.Owner == "" {
			return exitWith(exitNoSuchPath, "nobody holds %s", path)
		}
		only = h.Token
	}
	if err := m.Break(ctx, only, why); errors.Is(err, zksync.ErrStale) {
		return exitWith(exitRefused, "refused: the hold with the token %s does not last any more%s", only, heldDurably(ctx, m))
	} else if err != nil {
		return err
	}
	return nil
}
