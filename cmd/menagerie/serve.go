package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zktest"
)

func (a *app) serveCommand() *cobra.Command {
	listen := defaultServers
	var tick positiveDuration = 2e9
	verbose, extended := false, false
	cmd := &cobra.Command{
		Use:   "serve [--listen HOST:PORT] [--tick D] [--extended-types] [--verbose]",
		Short: "Run an in-process ZooKeeper for other processes; it keeps nothing",
		Long: `Runs an in-process ZooKeeper for other processes, for experiments and for tests. It is the
server of Go package zktest. The other commands reach it with --servers HOST:PORT; without
--servers they use ` + defaultServers + `.

It keeps nothing: when it ends, all nodes and sessions are gone. When it is ready it prints
"listening on HOST:PORT". It ends with Ctrl-C, SIGTERM or SIGHUP, exit code 0, and does not wait for
its clients.`,
		Example: `  menagerie serve &
  menagerie serve --listen 127.0.0.1:0          # any free port
  menagerie serve --tick 200ms                  # session timeouts from 400ms to 4s
  menagerie serve --verbose 2>requests.log      # what clients do, a line each`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range connectionFlags {
				if cmd.Flags().Changed(name) {
					return usage("serve is itself a server, --%s has no meaning here: say where with --listen", name)
				}
			}
			return a.serve(cmd, listen, a.serveOptions(tick.value(), verbose, extended))
		},
	}
	// Without those of a connection.
	before, rest, _ := strings.Cut(cmd.UsageTemplate(), "{{if .HasAvailableInheritedFlags}}")
	_, after, _ := strings.Cut(rest, "{{end}}")
	cmd.SetUsageTemplate(before + after)
	cmd.Flags().StringVar(&listen, "listen", listen, "listen on `HOST:PORT`; port 0 picks a free one")
	cmd.Flags().Var(&tick, "tick", "tick time `D`: session timeouts are between 2 and 20 ticks")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "print requests (also heartbeats), sessions and connections to standard error, one a line")
	cmd.Flags().BoolVar(&extended, "extended-types", false, "allow nodes with a time to live (a real server's zookeeper.extendedTypesEnabled)")
	return cmd
}

// serveOptions makes the server behave as a real one with that tick does.
func (a *app) serveOptions(tick time.Duration, verbose, extended bool) []zktest.Option {
	opts := []zktest.Option{zktest.WithTick(tick), zktest.WithTimeoutLimits(2*tick, 20*tick), zktest.WithLogger(slog.New(a.teller()))}
	if extended {
		opts = append(opts, zktest.WithExtendedTypes())
	}
	if verbose {
		opts = append(opts, zktest.WithVerbose(func(args ...any) { fmt.Fprintln(a.stderr, args...) }))
	}
	return opts
}

func (a *app) serve(cmd *cobra.Command, address string, opts []zktest.Option) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return listenError(address, err)
	}
	srv := zktest.Start(opts...)
	srv.SetZxid(firstZxid(time.Now()))
	fmt.Fprintln(a.stderr, "an in-process ZooKeeper: it keeps nothing, all data is gone when it ends")
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	if _, err := fmt.Fprintf(a.stdout, "listening on %s\n", l.Addr()); err != nil {
		srv.Close()
		<-failed
		return failure("serve on %s: cannot print that the server is ready: %v", l.Addr(), err)
	}
	select {
	case err := <-failed:
		srv.Close()
		return failure("serve on %s: %v", l.Addr(), err)
	case <-ctx.Done():
		srv.Close()
		<-failed
		return nil
	}
}

// firstZxid makes a server that is started later begin with later transactions than all before: clients that have seen a later one than the
// server's are refused, and tokens must not go back. The epoch, in the high half, is the number of seconds since 2020. The low half begins with
// the fraction of the second, in parts of which a server cannot use up as many as pass.
func firstZxid(now time.Time) int64 {
	epoch := now.Unix() - time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return epoch<<32 | int64(now.Nanosecond())<<31/int64(time.Second)
}

// listenError names the address and what to do about it.
func listenError(address string, err error) error {
	var addr *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return failure("cannot listen on %s: the port is in use; stop the server that has it, "+
			"or choose another with --listen (port 0 picks a free one)", address)
	case errors.As(err, &addr):
		return usage("cannot listen on %q: %s; want HOST:PORT such as %s", address, addr.Err, defaultServers)
	case errors.Is(err, syscall.EACCES):
		return failure("cannot listen on %s: permission denied; choose a port above 1023 with --listen", address)
	}
	return failure("cannot listen on %s: %s; choose another address with --listen", address, strings.TrimPrefix(err.Error(), "listen "))
}
