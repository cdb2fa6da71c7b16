package main

import (
	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zksync"
)

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
