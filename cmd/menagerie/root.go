package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns the exit code of the process.
func execute(args []string, stdout, stderr io.Writer) int {
	a := &app{args: args, stdout: stdout, stderr: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = a.misnamed
	}
	return report(stderr, cmd, err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "menagerie",
		Short: "Distributed locks on ZooKeeper",
		Long: `Distributed locks on ZooKeeper. Try them, use them from the shell, inspect them, measure them.

Name the servers as for any ZooKeeper client, with an optional chroot: zk1:2181,zk2:2181,zk3:2181/app`,
		Example: `  menagerie serve &                                     # a ZooKeeper for experiments
  menagerie lock /locks/nightly --wait 5m -- sleep 1    # one at a time in the cluster
  menagerie ls -r                                       # who holds, who waits
  menagerie demo --kill                                 # the lock works while a process dies`,
		Version:       thisBuild().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		// How many letters a name may be off and still be suggested.
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			switch cmd.Name() {
			case "bench", "demo", "serve":
				a.stderr = progress(a.stderr)
			}
			if !connects(cmd) {
				return nil
			}
			return a.resolve(cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// Behind a name that is no command, --help is as wrong as the name alone.
		if names := cmd.Flags().Args(); cmd.HasSubCommands() && len(names) > 0 {
			a.misnamed = unknownCommand(cmd, names[0])
			return
		}
		help(cmd, args)
	})
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	a.register(root)
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "Global Flags:", "Flags of the connection (in brackets: the environment, which a flag overrides):", 1))
	root.AddCommand(
		a.lockCommand(), a.rlockCommand(), a.semCommand(), a.electCommand(), a.onceCommand(), a.cronCommand(), a.holdCommand(), a.unholdCommand(),
		a.barrierCommand(), a.latchCommand(), a.gateCommand(), a.queueCommand(), a.groupCommand(),
		a.lsCommand(), a.topCommand(), a.uiCommand(), a.waitCommand(), a.statusCommand(), a.deadlocksCommand(),
		a.releaseCommand(), a.resetCommand(),
		a.demoCommand(), a.demoWorkerCommand(), a.serveCommand(), a.benchCommand(), a.versionCommand(), a.manCommand(),
	)
	strictBuiltins(root)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true // our usage lines have them where they belong
	}
	return root
}

// connects reports whether a command connects to servers.
func connects(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent() // completion has commands of its own
	}
	switch cmd.Name() {
	case "serve", "completion", "help", "version", "man":
		return false
	}
	return cmd.HasParent()
}
