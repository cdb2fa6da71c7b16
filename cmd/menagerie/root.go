package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	serversEnv     = "MENAGERIE_SERVERS"
	defaultServers = "127.0.0.1:2181"
	defaultTimeout = 10 * time.Second
)

// app is what all commands share: where to write and the flags of the root.
type app struct {
	args           []string // as given, for the one question pflag cannot answer (see commandOf)
	stdout, stderr io.Writer
	servers        string
	timeout        positiveDuration
}

// execute runs one command line and returns the exit code of the process.
func execute(args []string, stdout, stderr io.Writer) int {
	a := &app{args: args, stdout: stdout, stderr: stderr, timeout: positiveDuration(defaultTimeout)}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	return report(stderr, cmd, err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "menagerie",
		Short: "Distributed locks on ZooKeeper",
		Long: `Distributed locks on ZooKeeper: try them, use them from the shell, look at them, measure them.

Servers are named like ZooKeeper clients do it, chroot included: zk1:2181,zk2:2181,zk3:2181/app`,
		Example: `  menagerie demo --kill
  menagerie serve --listen 127.0.0.1:2181
  menagerie lock /locks/nightly --wait 5m -- ./backup.sh --full
  menagerie ls /locks/nightly`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		// How many letters a name may be off and still be suggested.
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// A script whose variable is empty must not end up on another server.
			if cmd.Flags().Changed("servers") && strings.TrimSpace(a.servers) == "" {
				return usage("--servers is empty: name the servers, or leave the flag out")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&a.servers, "servers", os.Getenv(serversEnv),
		"ZooKeeper servers, as host:port,host:port/chroot (environment: "+serversEnv+")")
	flags.Var(&a.timeout, "timeout",
		"session timeout to ask for; also how long an unreachable server is tried")
	root.AddCommand(a.demoCommand(), a.demoWorkerCommand(), a.serveCommand(), a.lockCommand(), a.rlockCommand(), a.semCommand(), a.electCommand(), a.onceCommand(), a.barrierCommand(), a.lsCommand(), a.benchCommand())
	strictBuiltins(root)
	return root
}

// version names the build: the module version of a "go install", else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "commit " + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
