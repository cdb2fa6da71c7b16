package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) latchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "latch down|wait PATH --count N",
		Short: "Wait until N events were counted; late processes pass at once",
		Long: `A latch opens when N events were counted at PATH, in the whole cluster, and stays open. An event stays
counted when the process that counted it ends. So unlike at a barrier, a process that comes late, or
comes back, passes at once. PATH is used once: the next batch has another one.`,
		Example: `  menagerie latch down /batch/7/loaded --count 2; menagerie latch down /batch/7/loaded --count 2
  menagerie latch wait /batch/7/loaded --count 2 --wait 1h
  menagerie once /batch/7/worker3-began -- menagerie latch down /batch/7/began --count 20    # counts a worker once`,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	down := a.latchUse("down", "Count an event", `Counts one event of the latch PATH, and does not wait for others. After the latch has opened it changes
nothing. If this process dies meanwhile, the event may be counted.`, (*zklatch.Latch).CountDown)
	wait := a.latchUse("wait", "Wait until all events were counted",
		`Waits until N events were counted at the latch PATH.`, (*zklatch.Latch).Wait)
	cmd.AddCommand(down, wait)
	return cmd
}

// latchUse makes one of the commands of latch.
func (a *app) latchUse(name, short, long string, use func(*zklatch.Latch, context.Context) error) *cobra.Command {
	var o lockOptions
	var wait positiveDuration
	var events count
	cmd := &cobra.Command{
		Use:   name + " PATH --count N [--wait D]",
		Short: short,
		Long: long + `

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  done
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or another process gave another --count
   75  not done in time (--wait)
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example:               "  menagerie latch down /batch/7/loaded --count 1 && menagerie latch " + name + " /batch/7/loaded --count 1",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onePath(cmd, args); err != nil {
				return err
			}
			if events == 0 {
				return usage("--count is missing: the number of events")
			}
			o.path, o.wait, o.patience = args[0], wait.value(), a.patience(cmd, wait.value())
			return a.waiting(cmd.Context(), o, "latch "+name, func(w *vigil) error {
				err := use(zklatch.New(w.s, o.path, int(events)), w.ctx)
				if zksync.Ambiguous(err) {
					return failure("no answer from %s: the event may be counted at %s: %s", a.target(), o.path, forPeople(err))
				}
				return err
			})
		},
	}
	cmd.Flags().Var(&events, "count", "the latch opens after `N` events (required)")
	cmd.Flags().Var(&wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	return cmd
}
