package main

import "github.com/spf13/cobra"

func (a *app) onceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "once PATH [--wait D | --try] [--grace D] -- CMD ARGS... | once PATH --reset [--wait D]",
		Short: "Run a command unless another process in the cluster has",
		Long: `Runs CMD if no process in the cluster has run it under PATH with success, which is exit code 0.
While another process runs it, this one waits until that one succeeds or fails. If PATH is done
already, CMD does not run, the exit code is 0, and a line on standard error says
when and where it was done. --reset forgets that it was done.

If the process that runs CMD dies, or is cut off for longer than the session timeout, the next
process runs CMD again, after what the first one has done. So CMD must be safe to start again.
CMD gets MENAGERIE_PATH and MENAGERIE_TOKEN in its environment. The token is a fencing token:
have your storage refuse a smaller one than the greatest it has seen. CMD runs in a process group
of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the group.

If the turn is lost (no server has answered for about half of the session timeout, or its node was
removed), the whole group gets SIGTERM, and SIGKILL if it has not ended after --grace.

Without --servers the command uses ` + defaultServers + `.

Exit codes: that of CMD (128+n if signal n ended it), or
    0  done, by CMD now or by another process before
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line; CMD did not run
   75  another process runs it (--try), or still ran it at the end of --wait; CMD did not run
   76  lost while CMD ran, or before its success could be recorded
  126  CMD cannot be executed
  127  CMD was not found
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie once /migrations/42 -- echo migrating
  menagerie once /migrations/42 --wait 10m -- echo migrating && echo "now it is done"
  menagerie once "/reports/$(date +%F)" --try -- date
  menagerie once /migrations/42 --reset`,
	}
	given := a.waitFlags(cmd)
	reset := cmd.Flags().Bool("reset", false, "forget that it was done; takes no CMD, and waits while one runs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := given()
		if *reset {
			return a.onceReset(cmd, args, o)
		}
		o, err := a.lockOptions(cmd, args, o)
		if err != nil {
			return err
		}
		return a.runOnce(cmd.Context(), o)
	}
	return cmd
}
