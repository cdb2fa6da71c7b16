package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zktest"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	listen, control           string
	tick                      positiveDuration
	verbose, extended, manual bool
}

func (a *app) serveCommand() *cobra.Command {
	f := serveFlags{listen: defaultServers, tick: 2e9}
	cmd := &cobra.Command{
		Use:   "serve [--listen HOST:PORT] [--tick D] [--extended-types] [--verbose] [--control HOST:PORT]",
		Short: "Run an in-process ZooKeeper for other processes; it keeps nothing",
		Long: `Runs an in-process ZooKeeper for other processes, for experiments and for tests. It is the
server of Go package zktest. The other commands reach it with --servers HOST:PORT; without
--servers they use ` + defaultServers + `.

It keeps nothing: when it ends, all nodes and sessions are gone. When it is ready it prints
"listening on HOST:PORT". It ends with Ctrl-C, SIGTERM or SIGHUP, exit code 0, and does not wait for
its clients.

With --control tests in any language cause faults by HTTP with JSON: POST /expire, /disconnect,
/partition, /heal, /lose-reply, /lose-request, /delay, /refuse, /restart, /advance; and look: GET
/tree, /requests, /sessions, /leftovers. A second line is then printed: "control on http://HOST:PORT".
docs/control.md has them all.`,
		Example: `  menagerie serve &
  menagerie serve --listen 127.0.0.1:0          # any free port
  menagerie serve --tick 200ms                  # session timeouts from 400ms to 4s
  menagerie serve --verbose 2>requests.log      # what clients do, a line each
  menagerie serve --control 127.0.0.1:2182 &    # then: curl -X POST http://127.0.0.1:2182/restart`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd, f)
		},
	}
	withoutConnection(cmd, "say where with --listen")
	cmd.Flags().StringVar(&f.listen, "listen", f.listen, "listen on `HOST:PORT`; port 0 picks a free one")
	cmd.Flags().Var(&f.tick, "tick", "tick time `D`: session timeouts are between 2 and 20 ticks")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "print requests (also heartbeats), sessions, connections to standard error, one a line")
	cmd.Flags().BoolVar(&f.extended, "extended-types", false, "allow nodes with a time to live (a real server's zookeeper.extendedTypesEnabled)")
	cmd.Flags().StringVar(&f.control, "control", "", "listen on `HOST:PORT` of this machine for what causes faults; port 0 picks a free one")
	cmd.Flags().BoolVar(&f.manual, "manual-clock", false, "sessions expire only when POST /advance moves the clock; needs --control")
	return cmd
}

// withoutConnection makes a command that connects to no servers refuse the flags of a connection, with a hint, and
// leaves them out of its help.
func withoutConnection(cmd *cobra.Command, hint string) {
	before, rest, _ := strings.Cut(cmd.UsageTemplate(), "{{if .HasAvailableInheritedFlags}}")
	_, after, _ := strings.Cut(rest, "{{end}}")
	cmd.SetUsageTemplate(before + after)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range connectionFlags {
			if cmd.Flags().Changed(name) {
				return usage("%s connects to no servers, --%s has no meaning here: %s", cmd.Name(), name, hint)
			}
		}
		return run(cmd, args)
	}
}

// serveOptions makes the server behave as a real one with that tick does.
func (a *app) serveOptions(f serveFlags) []zktest.Option {
	tick := f.tick.value()
	opts := []zktest.Option{zktest.WithTick(tick), zktest.WithTimeoutLimits(2*tick, 20*tick), zktest.WithLogger(slog.New(a.teller()))}
	if f.extended {
		opts = append(opts, zktest.WithExtendedTypes())
	}
	if f.manual {
		opts = append(opts, zktest.WithManualClock())
	}
	if f.verbose {
		opts = append(opts, zktest.WithVerbose(func(args ...any) { fmt.Fprintln(a.stderr, args...) }))
	}
	return opts
}

func (a *app) serve(cmd *cobra.Command, f serveFlags) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	controls, err := listenForControl(f)
	if err != nil {
		return err
	}
	defer controls.Close()
	srv := zktest.Start(a.serveOptions(f)...)
	defer srv.Close()
	srv.SetZxid(firstZxid(time.Now()))
	if err := srv.Listen(f.listen); err != nil {
		return listenError("listen", f.listen, errors.Unwrap(err))
	}
	fmt.Fprintln(a.stderr, "an in-process ZooKeeper: it keeps nothing, all data is gone when it ends")
	ready := fmt.Sprintf("listening on %s\n", srv.Addr())
	if f.control != "" {
		ready += fmt.Sprintf("control on http://%s\n", controls.Addr())
	}
	if _, err := io.WriteString(a.stdout, ready); err != nil {
		return failure("serve on %s: cannot print that the server is ready: %v", srv.Addr(), err)
	}
	return a.control(ctx, srv, controls, f)
}

// firstZxid makes a server that is started later begin with later transactions than all before: clients that have seen a later one than the
// server's are refused, and tokens must not go back. The epoch, in the high half, is the number of seconds since 2020. The low half begins with
// the fraction of the second, in parts of which a server cannot use up as many as pass.
func firstZxid(now time.Time) int64 {
	epoch := now.Unix() - time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return epoch<<32 | int64(now.Nanosecond())<<31/int64(time.Second)
}

// listenError names the address and what to do about it.
func listenError(flag, address string, err error) error {
	var addr *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return failure("cannot listen on %s: the port is in use; stop the server that has it, "+
			"or choose another with --%s (port 0 picks a free one)", address, flag)
	case errors.As(err, &addr):
		return usage("cannot listen on %q: %s; want HOST:PORT such as %s", address, addr.Err, defaultServers)
	case errors.Is(err, syscall.EACCES):
		return failure("cannot listen on %s: permission denied; choose a port above 1023 with --%s", address, flag)
	}
	return failure("cannot listen on %s: %s; choose another address with --%s", address, strings.TrimPrefix(err.Error(), "listen "), flag)
}
