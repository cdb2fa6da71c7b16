package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zksync"
)

// lockOptions is the command line of lock and of the commands like it.
type lockOptions struct {
	path  string
	argv  []string // CMD ARGS...
	env   []string // what else CMD gets in its environment
	stdin *os.File // that of CMD; nil for that of this process
	wait  time.Duration
	try   bool
	// beside means that the session waits for others to leave, and has no entry of its own.
	beside bool
	grace  time.Duration
	// patience limits the first attempts to connect; zero means as long as wait.
	patience time.Duration
	forms    forms
}

// form gets a lease.
type form func(context.Context) (*zksync.Lease, error)

// forms returns the two ways to get what a command holds while CMD runs: to wait for it, and to try once.
type forms func(s *zksync.Session, path string) (wait, try form)

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
	if o.path, o.argv, err = commandOf(cmd, a.args, args, cmd.ArgsLenAtDash()); err != nil {
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
func commandOf(cmd *cobra.Command, raw, args []string, dash int) (path string, argv []string, err error) {
	want := "want: " + cmd.CommandPath() + " PATH -- CMD ARGS..."
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
