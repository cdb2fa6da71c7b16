package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) semCommand() *cobra.Command {
	var permits, weight, resize int64
	cmd := a.heldCommand(held{
		name: "sem", flags: "--permits N [--weight K] ", short: "Run a command while holding permits of a semaphore",
		what: "K of the N permits of the semaphore PATH",
		long: `The first process that uses the semaphore stores N at PATH; all others must give the same N.
Requests are granted in the order in which they came, so a request for many permits does not
starve.

With --resize it runs no CMD: it changes the number of permits of a semaphore that exists, for all its users,
and prints the old number and the new one. The others may go on to give the first N, or give the new one.
Fewer permits take nothing away from holders. As long as more are held than there are, nothing is granted;
a request for more than there are waits for another --resize. 0 pauses the semaphore. The exit code is 3
if something else is at PATH, and 4 if nothing is; then nothing was changed.`,
		example: `  menagerie sem /deploy/restarts --permits 2 -- sleep 1      # two at a time in the cluster
  menagerie sem /deploy/restarts --resize 5
  menagerie sem /gpu --permits 8 --weight 3 --wait 1h -- sleep 1`,
		forms: func(s *zksync.Session, path string) (wait, try form) {
			w := zksemaphore.NewWeighted(s, path, permits)
			return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, weight) },
				func(ctx context.Context) (*zksync.Lease, error) { return w.TryAcquireLease(ctx, weight) }
		},
	})
	cmd.Use += "\n  menagerie sem PATH --resize N"
	cmd.Flags().Int64Var(&permits, "permits", 0, "there are `N` permits (required)")
	cmd.Flags().Int64Var(&weight, "weight", 1, "CMD needs `K` of them")
	cmd.Flags().Int64Var(&resize, "resize", 0, "change the number of permits to `N`")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.Flags().Changed("resize"):
			return a.resize(cmd, args, resize)
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

// resize is sem --resize.
func (a *app) resize(cmd *cobra.Command, args []string, permits int64) error {
	excluded := []string{"permits", "weight", "wait", "try", "grace"}
	if i := slices.IndexFunc(excluded, cmd.Flags().Changed); i >= 0 {
		return usage("--resize and --%s exclude each other: leave one out", excluded[i])
	}
	if len(args) > 1 {
		return usage("--resize and CMD exclude each other: leave %q out", shorten(args[1]))
	}
	if err := onePath(cmd, args); err != nil {
		return err
	}
	if permits < 0 {
		return usage("--resize is %d, want 0 or more", permits)
	}
	o := lockOptions{path: args[0], try: true, patience: a.patience(cmd, 0)}
	return a.waiting(cmd.Context(), o, "sem --resize", func(w *vigil) error {
		was, err := semaphoreAt(w, o.path)
		if err != nil {
			return err
		}
		// Whichever number this constructor has is stored. Another one than the first would be refused to the others.
		err = zksemaphore.NewWeighted(w.s, o.path, was.Declared).Resize(w.ctx, permits)
		if zksync.Ambiguous(err) {
			return failure("no answer from %s: the number of permits may be changed at %s: %s", a.target(), o.path, forPeople(err))
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s: %d -> %s\n", o.path, was.Now(), wording.Plural(permits, "permit"))
		return outputError(err)
	})
}

// semaphoreAt is the number of permits at a path, where a semaphore must be.
func semaphoreAt(w *vigil, path string) (found queue.Permits, err error) {
	err = tree.Looking(w.ctx, w.s, func(ctx context.Context, l *tree.Look) error {
		n, err := l.At(ctx, path)
		switch {
		case err != nil:
			return err
		case n == nil:
			return exitWith(exitNoSuchPath, "%s does not exist", path)
		case n.Denied:
			return failure("%s is %s", path, tree.Denied)
		}
		var ok bool
		found, ok = queue.ParsePermits(n.Data)
		if !ok || layout.TypeOf(n.Data, n.Children) != layout.Semaphore {
			return exitWith(exitRefused, "refused: %s is no semaphore", path)
		}
		return nil
	})
	return found, err
}
