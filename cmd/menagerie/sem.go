package main

import (
	"context"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/spf13/cobra"
)

func (a *app) semCommand() *cobra.Command {
	var permits, weight int64
	cmd := a.heldCommand(held{
		name: "sem", flags: "--permits N [--weight K] ", short: "Run a command while holding permits of a semaphore",
		what: "K of the N permits of the semaphore PATH",
		long: `The first process that uses the semaphore stores N at PATH; all others must give the same N.
Requests are granted in the order in which they came, so a request for many permits does not
starve.`,
		example: `  menagerie sem /deploy/restarts --permits 2 -- sleep 1      # two at a time in the cluster
  menagerie sem /gpu --permits 8 --weight 3 --wait 1h -- sleep 1`,
		forms: func(s *zksync.Session, path string) (wait, try form) {
			w := zksemaphore.NewWeighted(s, path, permits)
			return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, weight) },
				func(ctx context.Context) (*zksync.Lease, error) { return w.TryAcquireLease(ctx, weight) }
		},
	})
	cmd.Flags().Int64Var(&permits, "permits", 0, "there are `N` permits (required)")
	cmd.Flags().Int64Var(&weight, "weight", 1, "CMD needs `K` of them")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !cmd.Flags().Changed("permits"):
			return usage("--permits is missing: the number of permits")
		case permits < 1:
			return usage("--permits is %d, want 1 or more", permits)
		case weight < 1 || weight > permits:
			return usage("--weight is %d, want 1 to %d, the number of --permits", weight, permits)
		}
		return run(cmd, args)
	}
	return cmd
}
