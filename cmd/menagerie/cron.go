package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	_ "time/tzdata" // for images without time zones

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

// What tells CMD about its tick.
const (
	jobEnv       = "MENAGERIE_JOB"
	scheduledEnv = "MENAGERIE_SCHEDULED"
	missedEnv    = "MENAGERIE_MISSED"
	lastErrEnv   = "MENAGERIE_LAST_ERR"
	outOfTurnEnv = "MENAGERIE_OUT_OF_TURN"
)

// cronOptions is the command line of cron.
type cronOptions struct {
	lockOptions
	job      string
	spec     string
	every    time.Duration
	missed   string
	once     bool
	limit    time.Duration
	jitter   time.Duration
	revision int
}

// jobOptions are the options of the job.
func (o cronOptions) jobOptions() []zkcron.JobOption {
	opts := []zkcron.JobOption{zkcron.WithMissed(missedPolicies[o.missed]), zkcron.WithJitter(o.jitter), zkcron.WithRevision(o.revision)}
	if o.once {
		opts = append(opts, zkcron.WithAtMostOnce())
	}
	if o.limit > 0 {
		opts = append(opts, zkcron.WithTimeout(o.limit))
	}
	return opts
}

// missedPolicies are the values of --missed.
var missedPolicies = map[string]zkcron.Missed{"once": zkcron.RunOnce, "skip": zkcron.Skip, "all": zkcron.RunAll}

// cronHelp is the long help of the command.
const cronHelp = `Start it on every machine that may do the work. At each tick one machine runs CMD: the one that
started first. When that one ends, dies or is cut off, the one that has waited longest takes over.
The command runs until a signal ends it. PATH is a schedule; each --name in it is a job.

--spec has five fields as in crontab: minute, hour, day of the month, month, day of the week; or it is
@yearly, @monthly, @weekly, @daily or @hourly. Times are in UTC; "CRON_TZ=Europe/Berlin 0 3 * * *" is
in that time zone. --every has a tick at each multiple of D since 1970, as --spec "@every D" has. All
machines must give the same schedule, --missed, --at-most-once and --revision. A machine with
different ones waits, and says so, until the last of the others has ended. With a greater --revision
its schedule is in force at once, and machines with a smaller one leave the job.

If CMD fails, cron reports and records it, and runs CMD again at the next tick. A tick that could not
begin in time is missed: with --missed once (the default) CMD runs once for all missed ticks, with all
once for each, with skip not if it is more than two session timeouts late. If the process that runs
CMD dies or is cut off, or a signal ends CMD with it, another machine repeats that tick, unless
--at-most-once is given.

With --run-timeout CMD is ended when it has run that long, and the tick has failed. With --jitter each
tick begins at a random moment within D after its time. "cron run-now" has the job run out of turn.

CMD gets MENAGERIE_PATH, MENAGERIE_JOB, MENAGERIE_SCHEDULED (the time of the tick), MENAGERIE_MISSED
(how many ticks before it did not run), MENAGERIE_LAST_ERR (how the tick before failed; empty if it
did not), MENAGERIE_OUT_OF_TURN (1 after "cron run-now") and MENAGERIE_TOKEN in its environment. The
token is a fencing token: have your storage refuse a smaller one than the greatest it has seen. CMD
runs in a process group of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the group,
and end cron when CMD has ended.

If the turn is lost (no server has answered for about half of the session timeout, or its node was
removed), the whole group gets SIGTERM, and SIGKILL if it has not ended after --grace. Then cron waits
for its turn.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    1  servers unreachable for --connect-timeout when it starts, or another failure
    2  wrong command line
  126  CMD cannot be executed
  127  CMD was not found
  130  ended by SIGINT, or CMD was (143 by SIGTERM, 129 by SIGHUP)`

func (a *app) cronCommand() *cobra.Command {
	var o cronOptions
	var every, limit, jitter positiveDuration
	grace := graceDuration(5 * time.Second)
	cmd := &cobra.Command{
		Use: `cron PATH (--spec SPEC | --every D) [--name NAME] [--missed WHAT] [--at-most-once] -- CMD ARGS...
  menagerie cron run-now PATH [NAME] [--wait D]`,
		Short: "Run a command at its times, each time on one of many machines",
		Long:  cronHelp,
		Example: `  menagerie cron /cron/reports --every 10s -- date
  menagerie cron /cron/reports --name nightly --spec "CRON_TZ=Europe/Berlin 0 3 * * *" -- ./report.sh
  menagerie cron /cron/cleanup --spec "*/15 * * * *" --missed skip -- sh -c 'echo "$MENAGERIE_SCHEDULED"'`,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.spec, "spec", "", "when CMD runs: five `fields`, as in crontab, or @daily and the like")
	flags.Var(&every, "every", "run CMD at each multiple of `D`")
	flags.StringVar(&o.job, "name", "job", "the `name` of the job in PATH")
	flags.StringVar(&o.missed, "missed", "once", "`what` to do about ticks that could not begin in time: once, skip or all")
	flags.BoolVar(&o.once, "at-most-once", false, "do not repeat a tick if its process dies while running it")
	flags.Var(&limit, "run-timeout", "end CMD after `D`; the tick has failed then")
	flags.Var(&jitter, "jitter", "begin each tick at a random moment within `D` after its time")
	flags.IntVar(&o.revision, "revision", 0, "this schedule replaces those of a revision less than `N` at once")
	flags.Var(&grace, "grace", "wait `D` between SIGTERM and SIGKILL to CMD after a loss or --run-timeout")
	a.explainDash(cmd)
	now := a.cronRunNowCommand()
	cmd.AddCommand(now)
	now.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		o.grace, o.every, o.limit, o.jitter = time.Duration(grace), every.value(), limit.value(), jitter.value()
		if o.lockOptions, err = a.lockOptions(cmd, args, o.lockOptions); err != nil {
			return err
		}
		if (o.spec == "") == (o.every == 0) {
			return usage("want one of --spec and --every")
		}
		if _, there := missedPolicies[o.missed]; !there {
			return usage("--missed %q: want once, skip or all", shorten(o.missed))
		}
		return a.runCron(cmd.Context(), o)
	}
	return cmd
}

// runCron runs the job until a signal comes. It ends the context of Run, and is passed on to CMD.
func (a *app) runCron(ctx context.Context, o cronOptions) error {
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
	signals, passed := make(chan os.Signal, 16), make(chan os.Signal, 16)
	notify(signals, forwardedSignals...)
	defer signal.Stop(signals)
	ctx, end := context.WithCancelCause(ctx)
	go func() { // as long as the process
		for sig := range signals {
			end(&interruption{signal: sig})
			select {
			case passed <- sig:
			default:
			}
		}
	}()
	s, err := a.connect(ctx, o.patience, zksync.WithName(filepath.Base(o.argv[0])))
	if err != nil {
		return err
	}
	defer func() { _ = (*session.Session)(s).CloseWithin(closeLimit) }() // a session that cannot be ended now expires
	f := func(ctx context.Context, t zkcron.Tick) error {
		return a.runTick(ctx, s, t, o, program, passed, end)
	}
	c := zkcron.New(s, o.path)
	if o.every > 0 {
		c.Every(o.job, o.every, f, o.jobOptions()...)
	} else {
		c.At(o.job, o.spec, f, o.jobOptions()...)
	}
	err = c.Run(ctx)
	if i, ok := interrupted(ctx); ok {
		return exitWith(i.exitCode(), "%v", i)
	}
	return a.sessionError(err)
}

// runTick runs CMD for one tick. What it returns is what the record says of the tick.
func (a *app) runTick(ctx context.Context, s *zksync.Session, t zkcron.Tick, o cronOptions, program string, signals <-chan os.Signal, end context.CancelCauseFunc) error {
	id, lease := s.ID(), zksync.LeaseFrom(ctx)
	at := t.Scheduled.Format(time.RFC3339Nano)
	env := append(os.Environ(), pathEnv+"="+o.path, tokenEnv+"="+t.Token.String(), jobEnv+"="+t.Name,
		scheduledEnv+"="+at, missedEnv+"="+strconv.Itoa(t.Missed), lastErrEnv+"="+oneLine(t.LastErr))
	if t.OutOfTurn {
		env = append(env, outOfTurnEnv+"=1")
	}
	c, err := child.Start(program, o.argv, env, lease.Valid)
	late := false
	if err == nil {
		over := overOrLate(ctx, lease, c.Done())
		lost := a.attend(c, over, lease.Valid, signals, o.grace)
		late = errors.Is(ctx.Err(), context.DeadlineExceeded)
		switch {
		case lost && late && lease.Err() == nil:
			err = fmt.Errorf("%s has run for longer than %v (--run-timeout) and was ended", filepath.Base(o.argv[0]), o.limit)
		case lost:
			err = fmt.Errorf("lost %s on %s while %s was running: %s", o.path, a.target(), o.argv[0], reasonOfLoss(s, id, lease))
		case c.ExitCode() == exitSignal+int(syscall.SIGINT):
			// In front of a terminal CMD gets a Ctrl-C, and this process does not. Like a shell, it ends with CMD.
			end(&interruption{signal: os.Interrupt})
			return fmt.Errorf("interrupted")
		case c.ExitCode() != 0:
			err = fmt.Errorf("%s has ended with exit code %d", filepath.Base(o.argv[0]), c.ExitCode())
		}
	}
	if err != nil && (ctx.Err() == nil || late || lease.Err() != nil) {
		fmt.Fprintf(a.stderr, "menagerie: %s: %s\n", at, oneLine(err.Error()))
	}
	return err
}

// overOrLate is closed when the lease has ended, or when the time of the run is over. The end of Run's context, after a signal, does
// not close it: CMD gets the signal.
func overOrLate(ctx context.Context, lease *zksync.Lease, ended <-chan struct{}) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		for done := ctx.Done(); ; {
			select {
			case <-done:
				if done = nil; !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					continue
				}
			case <-lease.Done():
			case <-ended:
			}
			close(over)
			return
		}
	}()
	return over
}
