package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) latchCommand() *cobra.Command {
	var events count
	use := func(f func(*zklatch.Latch, context.Context) error) func(*vigil, string) error {
		return func(w *vigil, path string) error { return f(zklatch.New(w.s, path, int(events)), w.ctx) }
	}
	example := func(name string) string {
		return "  menagerie latch down /batch/7/loaded --count 1 && menagerie latch " + name + " /batch/7/loaded --count 1"
	}
	cmd := family(&cobra.Command{
		Use:   "latch down|wait PATH --count N",
		Short: "Wait until N events were counted; late processes pass at once",
		Long: `A latch opens when N events were counted at PATH, in the whole cluster, and stays open. An event stays
counted when the process that counted it ends. So unlike at a barrier, a process that comes late, or
comes back, passes at once. PATH is used once: the next batch has another one.`,
		Example: `  menagerie latch down /batch/7/loaded --count 2; menagerie latch down /batch/7/loaded --count 2
  menagerie latch wait /batch/7/loaded --count 2 --wait 1h
  menagerie once /batch/7/worker3-began -- menagerie latch down /batch/7/began --count 20    # counts a worker once`,
	}, a.stepCommand(step{
		of: "latch", name: "down", flags: " --count N", short: "Count an event",
		long: `Counts one event of the latch PATH, and does not wait for others. After the latch has opened it changes
nothing. If this process dies meanwhile, the event may be counted.`,
		wrong: "another process gave another --count", doubt: "the event may be counted at", example: example("down"),
		use: use((*zklatch.Latch).CountDown),
	}), a.stepCommand(step{
		of: "latch", name: "wait", flags: " --count N", short: "Wait until all events were counted",
		long:  `Waits until N events were counted at the latch PATH.`,
		wrong: "another process gave another --count", example: example("wait"),
		use: use((*zklatch.Latch).Wait),
	}))
	for _, c := range cmd.Commands() {
		c.Flags().Var(&events, "count", "the latch opens after `N` events (required)")
		run := c.RunE
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && events == 0 {
				return usage("--count is missing: the number of events")
			}
			return run(cmd, args)
		}
	}
	return cmd
}

// family makes cmd the parent of commands, which does nothing alone.
func family(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.SuggestionsMinimumDistance = cobra.ArbitraryArgs, 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.AddCommand(below...)
	return cmd
}

// step describes a command that uses a meeting point at PATH once, and runs no CMD.
type step struct {
	of, name, flags      string // "latch", "down", and its own flags behind PATH in the usage line
	short, long, example string
	wrong                string // the misuse beside a wrong command line
	doubt                string // what may be the case at PATH if an answer is lost
	use                  func(w *vigil, path string) error
}

// stepCommand makes the command that s describes.
func (a *app) stepCommand(s step) *cobra.Command {
	var wait positiveDuration
	cmd := &cobra.Command{
		Use:   s.name + " PATH" + s.flags + " [--wait D]",
		Short: s.short,
		Long: s.long + `

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  done
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or ` + s.wrong + `
   75  not done in time (--wait)
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example:               s.example,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onePath(cmd, args); err != nil {
				return err
			}
			o := lockOptions{path: args[0], wait: wait.value(), patience: a.patience(cmd, wait.value())}
			return a.waiting(cmd.Context(), o, s.of+" "+s.name, func(w *vigil) error {
				err := s.use(w, o.path)
				if s.doubt != "" && zksync.Ambiguous(err) {
					return failure("no answer from %s: %s %s: %s", a.target(), s.doubt, o.path, forPeople(err))
				}
				return err
			})
		},
	}
	cmd.Flags().Var(&wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	return cmd
}
