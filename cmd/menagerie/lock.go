package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/spf13/cobra"
)

// lockOptions is the command line of lock and of the commands like it.
type lockOptions struct {
	path  string
	argv  []string // CMD ARGS...
	env   []string // what else CMD gets in its environment
	stdin *os.File // that of CMD; nil for that of this process
	wait  time.Duration
	try   bool
	grace time.Duration
	// patience limits the first attempts to connect; zero means as long as wait.
	patience time.Duration
	forms    forms
}

// form gets a lease.
type form func(context.Context) (*zksync.Lease, error)

// forms returns the two ways to get what a command holds while CMD runs: to wait for it, and to try once.
type forms func(s *zksync.Session, path string) (wait, try form)

// held describes a command that runs another one while it holds something.
type held struct {
	name, flags string // "lock", and its own flags behind PATH in the usage line
	short       string
	what        string // "the lock PATH"
	long        string // a paragraph about it
	example     string
	forms       forms
}

func (a *app) lockCommand() *cobra.Command {
	var delay positiveDuration
	cmd := a.heldCommand(held{
		name: "lock", flags: "[--lock-delay D] ", short: "Run a command while holding a lock", what: "the lock PATH",
		example: `  menagerie lock /locks/nightly -- sleep 1
  menagerie lock /locks/nightly --try -- sleep 1 || echo "somebody else holds the lock"
  menagerie lock /locks/deploy --wait 5m -- sh -c 'echo "token $MENAGERIE_TOKEN"'
  menagerie lock /locks/backup --lock-delay 30s -- sleep 1
  menagerie lock /locks/report -- timeout 10m date    # held for ten minutes at most
  menagerie --servers 127.0.0.1:2181/app lock -v /locks/deploy -- date`,
		forms: func(s *zksync.Session, path string) (wait, try form) {
			var opts []zksync.Option
			if delay > 0 {
				opts = append(opts, zksync.WithLockDelay(delay.value()))
			}
			m := zksync.NewMutex(s, path, opts...)
			return m.LockContext, m.TryLockContext
		},
	})
	cmd.Flags().Var(&delay, "lock-delay", "after a loss (not a release) let `D` pass before the next one is granted, for what cannot\n"+
		"check the token; all users of PATH must give the same D")
	return cmd
}

// heldCommand makes the command that h describes.
func (a *app) heldCommand(h held) *cobra.Command {
	if h.long != "" {
		h.long += "\n\n"
	}
	cmd := &cobra.Command{
		Use:   h.name + " PATH " + h.flags + "[--wait D | --try] [--grace D] -- CMD ARGS...",
		Short: h.short,
		Long: "Runs CMD while holding " + h.what + ", and releases it when CMD has ended.\n\n" + h.long +
			`CMD gets MENAGERIE_PATH and MENAGERIE_TOKEN in its environment. The token is a fencing token:
have your storage refuse a smaller one than the greatest it has seen. CMD runs in a process group
of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the group.

If what is held is lost (no server has answered for about half of the session timeout, or its node
was removed), the whole group gets SIGTERM, and SIGKILL if it has not ended after --grace.

Without --servers the command uses ` + defaultServers + `.

Exit codes: that of CMD (128+n if signal n ended it), or
    1  servers unreachable for --connect-timeout, or another failure; CMD did not run
    2  wrong command line; CMD did not run
   75  not free (--try) or not obtained in time (--wait); CMD did not run
   76  lost while CMD ran, whatever the exit code of CMD was
  126  CMD cannot be executed
  127  CMD was not found
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: h.example,
	}
	given := a.waitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := given()
		o.forms = h.forms
		o, err := a.lockOptions(cmd, args, o)
		if err != nil {
			return err
		}
		return a.runLock(cmd.Context(), o)
	}
	return cmd
}

// waitFlags adds the flags of a command that waits and then runs CMD. It returns the function that
// reads them.
func (a *app) waitFlags(cmd *cobra.Command) (given func() lockOptions) {
	var wait positiveDuration
	grace := graceDuration(5 * time.Second)
	var try bool
	flags := cmd.Flags()
	flags.Var(&wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	flags.BoolVar(&try, "try", false, "do not wait at all")
	flags.Var(&grace, "grace", "wait `D` between SIGTERM and SIGKILL to CMD after a loss")
	a.explainDash(cmd)
	return func() lockOptions {
		return lockOptions{wait: wait.value(), try: try, grace: time.Duration(grace)}
	}
}

// explainDash makes errors about flags say what to do if the flag belongs to CMD.
func (a *app) explainDash(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if !slices.Contains(a.args, "--") {
			return usage("%v; put -- in front of CMD if that belongs to CMD", flagError(err))
		}
		return err
	})
}

func (a *app) lockOptions(cmd *cobra.Command, args []string, o lockOptions) (lockOptions, error) {
	var err error
	if o.path, o.argv, err = commandOf(cmd.Name(), a.args, args, cmd.ArgsLenAtDash()); err != nil {
		return o, err
	}
	if err := checkPath(o.path); err != nil {
		return o, err
	}
	if o.wait > 0 && o.try {
		return o, usage("--wait and --try exclude each other: choose one")
	}
	o.patience = a.patience(cmd, o.wait)
	return o, nil
}

// commandOf splits the arguments of lock, or of the command name, into PATH and CMD ARGS. raw is the whole command
// line. args are the arguments without flags. dash is the number of args before "--", or
// -1 without "--".
//
// Without "--" a flag behind CMD may be CMD's or ours, and pflag has already taken it for
// ours. Only a command line without such a flag is clear. So CMD ARGS has to be the
// unchanged end of the command line.
func commandOf(name string, raw, args []string, dash int) (path string, argv []string, err error) {
	want := "want: menagerie " + name + " PATH -- CMD ARGS..."
	switch {
	case len(args) == 0:
		return "", nil, usage("PATH and CMD are missing, %s", want)
	case dash == 0:
		return "", nil, usage("PATH is missing in front of --, %s", want)
	case dash > 1:
		return "", nil, usage("only PATH may stand in front of --, found %q too, %s", shorten(args[1]), want)
	case len(args) == 1:
		return "", nil, usage("CMD is missing, %s", want)
	}
	path, argv = args[0], args[1:]
	if dash < 0 && (len(argv) > len(raw) || !slices.Equal(raw[len(raw)-len(argv):], argv)) {
		return "", nil, usage("there is a flag behind %q: put -- in front of CMD if the flag is CMD's, %s", shorten(argv[0]), want)
	}
	return path, argv, nil
}
