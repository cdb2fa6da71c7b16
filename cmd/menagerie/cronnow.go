package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) cronRunNowCommand() *cobra.Command {
	var o lockOptions
	var wait positiveDuration
	cmd := &cobra.Command{
		Use:   "run-now PATH [NAME] [--wait D]",
		Short: "Have a job run out of turn",
		Long: `Has the job NAME (default: job) of the schedule PATH run once, on the machine that runs its ticks, and
waits until that has ended. Calls that come before the run begins share it. If no machine runs the
job, it waits for one. If it ends before the run begins, the job does not run; a run that has begun
goes on. The ticks of the schedule are as they would be without it.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  the job has run, and succeeded
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line
    3  the job has run, and failed
    4  no such job
   75  the run had not ended at the end of --wait
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie cron run-now /cron/reports nightly --wait 10m`,
	}
	cmd.Flags().Var(&wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		job := "job"
		switch {
		case len(args) == 2:
			job, args = args[1], args[:1]
		case len(args) > 2:
			return usage("want PATH and NAME, found %q too", shorten(args[2]))
		}
		if err := onePath(cmd, args); err != nil {
			return err
		}
		o.path, o.wait = args[0], wait.value()
		o.patience = a.patience(cmd, o.wait)
		return a.runNow(cmd.Context(), o, job)
	}
	return cmd
}

func (a *app) runNow(ctx context.Context, o lockOptions, job string) error {
	return a.waiting(ctx, o, "cron run-now", func(w *vigil) error {
		err := zkcron.New(w.s, o.path).RunNow(w.ctx, job)
		switch {
		case errors.Is(err, zkcron.ErrFailed):
			return exitWith(exitJobFailed, "%s of %s: %s", shorten(job), o.path, forPeople(err))
		case errors.Is(err, zksync.ErrNotFound):
			return exitWith(exitNoSuchPath, "%s has no job %q", o.path, shorten(job))
		}
		return err
	})
}
