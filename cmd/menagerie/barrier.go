package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// indexEnv tells CMD which of the parties it is.
const indexEnv = "MENAGERIE_INDEX"

// barrierOptions is the command line of barrier. There may be no CMD.
type barrierOptions struct {
	lockOptions
	parties int
	asJSON  bool
}

func (a *app) barrierCommand() *cobra.Command {
	var o barrierOptions
	var wait positiveDuration
	var parties count
	cmd := &cobra.Command{
		Use:   "barrier PATH --parties N [--wait D] [--json] [-- CMD ARGS...]",
		Short: "Wait until N processes have arrived, then go on",
		Long: `Waits until N processes wait at PATH, in the whole cluster. Then all of them end with exit
code 0, or run CMD. The same PATH can be used again and again.

CMD gets MENAGERIE_PATH and MENAGERIE_INDEX in its environment. The index is a different number
from 0 to N-1 for each process; the last to arrive gets 0. Signals are passed on to CMD.

If a process gives up, because of --wait or a signal, it breaks the round: all that wait end
with 1, and those that arrive later begin a new round. If a process dies, it no longer counts
when its session has expired. The others go on waiting for another one in its place, so
you may start it again. If the others arrive before, it waits alone: use "menagerie latch" where
processes may come late.

Without --servers the command uses ` + defaultServers + `.

Exit codes: that of CMD (128+n if signal n ended it), or
    0  all have arrived
    1  another process gave up; or servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or another process gave another number of --parties
   75  not all arrived in time (--wait)
  126  CMD cannot be executed
  127  CMD was not found
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)
With any of these codes CMD did not run.`,
		Example: `  menagerie barrier /jobs/loaded --parties 2 --wait 1h & menagerie barrier /jobs/loaded --parties 2; wait
  for i in 1 2; do menagerie barrier /jobs/shards --parties 2 -- sh -c 'echo $MENAGERIE_INDEX' & done; wait
  menagerie barrier /jobs/alone --parties 1 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.wait, o.parties = wait.value(), int(parties)
			if err := a.barrierArguments(cmd, args, &o); err != nil {
				return err
			}
			return a.runBarrier(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.Var(&parties, "parties", "`N` processes have to arrive (required)")
	flags.Var(&wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	flags.BoolVar(&o.asJSON, "json", false, `print {"index":...,"parties":...} when all have arrived; not with CMD`)
	a.explainDash(cmd)
	return cmd
}

func (a *app) barrierArguments(cmd *cobra.Command, args []string, o *barrierOptions) (err error) {
	switch {
	case len(args) == 0:
		return usage("PATH is missing, want: menagerie barrier PATH --parties N")
	case len(args) == 1 && cmd.ArgsLenAtDash() < 0:
		o.path = args[0]
	default:
		if o.path, o.argv, err = commandOf(cmd, a.args, args, cmd.ArgsLenAtDash()); err != nil {
			return err
		}
	}
	switch {
	case o.parties == 0:
		return usage("--parties is missing: the number of processes")
	case o.asJSON && len(o.argv) > 0:
		return usage("--json and CMD exclude each other: standard output is CMD's")
	}
	o.patience = a.patience(cmd, o.wait)
	return checkPath(o.path)
}

// runBarrier is the whole of barrier: find CMD, wait for all, run CMD.
func (a *app) runBarrier(ctx context.Context, o barrierOptions) error {
	program, name := "", "barrier"
	if len(o.argv) > 0 {
		var err error
		if program, err = child.Resolve(o.argv[0]); err != nil {
			return cannotRun(err)
		}
		name = filepath.Base(o.argv[0])
	}
	return a.waiting(ctx, o.lockOptions, name, func(w *vigil) error {
		b := zkbarrier.NewBarrier(w.s, o.path, o.parties)
		index, err := meet(w.ctx, b)
		switch {
		case errors.Is(err, zksync.ErrBroken):
			return failure("%s gave up at %s on %s before all %d had arrived%s", quitter(err), o.path, a.target(), o.parties, remaining(err))
		case err != nil && w.ctx.Err() != nil:
			awaitBreak(w, b)
			return err
		case err != nil:
			return err
		}
		// All have arrived, so the end of --wait no longer counts.
		var i *interruption
		if err := w.end(); errors.As(err, &i) {
			return err
		}
		if program == "" {
			return a.printIndex(o, index)
		}
		goodbye(w.s) // CMD does not need the session, however long it runs
		return a.runFreely(o, index, program, w.signals)
	})
}

// meet waits until all have arrived. A process that died while it waited has broken the barrier, in this run or in one
// before. Then the others begin again, so that another process can take its place.
func meet(ctx context.Context, b *zkbarrier.Barrier) (index int, err error) {
	for {
		broken, err := b.Broken(ctx)
		if err == nil && broken {
			err = b.Reset(ctx)
		}
		if err != nil {
			return -1, err
		}
		index, err = b.Await(ctx)
		var why *zkbarrier.BrokenError
		if !errors.As(err, &why) || why.Why != zkbarrier.Died && why.Why != zkbarrier.Reset {
			return index, err
		}
	}
}

// quitter names the process that gave up, and so broke the round.
func quitter(err error) string {
	var why *zkbarrier.BrokenError
	if errors.As(err, &why) && len(why.By) > 0 {
		return "another process, " + rowsOf(why.By)[0].Who() + ","
	}
	return "another process"
}

// remaining names the parties that had arrived when the round was broken.
func remaining(err error) string {
	var why *zkbarrier.BrokenError
	if !errors.As(err, &why) || why.Count == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d had arrived", why.Count, why.Parties) + names(rowsOf(why.Arrived), why.Count)
}

func rowsOf(owners []zksync.Owner) (rows []tree.Row) {
	for _, o := range owners {
		rows = append(rows, tree.Row{Owner: tree.Owner(o)})
	}
	return rows
}

// awaitBreak waits until the servers have answered the request by which Await has broken the round, because answers come in
// order. If no server answers soon, the others do not hear of it, and continue to wait.
func awaitBreak(w *vigil, b *zkbarrier.Barrier) {
	soon := time.Second // the servers may be far away, or busy
	if errors.Is(context.Cause(w.ctx), errNotInTime) {
		soon = 400 * time.Millisecond // half a second after --wait the process has ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = b.Broken(ctx)
	}()
	if !answered(w.s, soon) {
		cancel()
	}
	<-heard
}

func (a *app) printIndex(o barrierOptions, index int) error {
	if !o.asJSON {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "{\"index\":%d,\"parties\":%d}\n", index, o.parties)
	return outputError(err)
}

// runFreely runs CMD without a lease.
func (a *app) runFreely(o barrierOptions, index int, program string, signals <-chan os.Signal) error {
	env := append(os.Environ(), indexEnv+"="+strconv.Itoa(index), pathEnv+"="+o.path)
	c, err := child.Start(program, o.argv, env, func() bool { return true })
	if err != nil {
		return cannotRun(err)
	}
	for {
		select {
		case sig := <-signals:
			c.Signal(sig)
		case <-c.Done():
			if code := c.ExitCode(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		}
	}
}
