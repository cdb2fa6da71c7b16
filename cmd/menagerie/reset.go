package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/layout"
	reads "github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	rec "github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/wording"
)

func (a *app) resetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset PATH [--yes]",
		Short: "Remove a barrier, latch, phaser or semaphore that is not in use",
		Long: `Removes the barrier, double barrier, latch, phaser or semaphore PATH, so that its next user makes it with
parameters of its own. That also repairs one whose data were overwritten by a lock at the same path.

It refuses while a process takes part: a party of a barrier or a phaser, a holder or a waiter of a
semaphore. Who only waits at a latch or a phaser leaves no node, and is told that it was removed.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  removed
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line
    3  refused: it is in use, or something else is there, and nothing was removed
    4  PATH does not exist`,
		Example: `  menagerie sem /deploy/restarts --permits 2 -- true
  menagerie reset /deploy/restarts
  menagerie sem /deploy/restarts --permits 3 -- true`,
		Args: onePath,
	}
	cmd.Flags().Bool("yes", false, "accepted as of release; reset never asks")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := lockOptions{path: args[0], try: true, patience: a.patience(cmd, 0)}
		return a.waiting(cmd.Context(), o, "reset", func(w *vigil) error {
			return tree.Looking(w.ctx, w.s, func(ctx context.Context, l *tree.Look) error { return reset(ctx, l, o.path) })
		})
	}
	return cmd
}

// reset removes what is at a path. If that changes meanwhile, it looks again.
func reset(ctx context.Context, l *tree.Look, path string) error {
	for tried := false; ; tried = true {
		n, err := l.At(ctx, path)
		switch {
		case err != nil:
			return err
		case n == nil && tried:
			return nil // by the transaction whose answer was lost, or by another process
		case n == nil:
			return exitWith(exitNoSuchPath, "%s does not exist", path)
		}
		kind := meetingPoint(n)
		if kind == "" {
			return exitWith(exitRefused, "refused: %s is no barrier, latch, phaser or semaphore", path)
		}
		ops, err := removalOf(ctx, l, n, func(child string) bool { return layout.IsPart(kind, child) })
		if err != nil {
			return err
		}
		_, err = node.RepeatTransaction(ctx, l.Epoch, ops...)
		if !rec.Conflict(err) {
			return err
		}
		if errors.Is(err, zk.ErrNotEmpty) && tried {
			return exitWith(exitRefused, "refused: %s is in use", path)
		}
	}
}

// meetingPoint is the type of a node that reset removes; "" if it does not. If a lock has overwritten the data, the children show it.
func meetingPoint(n *reads.Node) string {
	switch found := layout.TypeOf(n.Data, n.Children); found {
	case layout.Latch, layout.Barrier, layout.DoubleBarrier, layout.Phaser, layout.Semaphore:
		return found
	}
	if slices.Equal(n.Children, []string{"queue"}) && n.Size == 0 && n.Stat.DataLength > 0 { // the data are those of a lock's entry
		return layout.Semaphore
	}
	return ""
}

// isOfParty accepts the names of the nodes that parties, events and entries make, which have nothing below them.
func isOfParty(name string) bool { return strings.HasPrefix(name, "_c_") }

// removalOf are the operations that delete n and all below it. It refuses if a process takes part. The servers refuse
// them if one comes before they are applied: its node is in one of the directories.
func removalOf(ctx context.Context, l *tree.Look, n *reads.Node, part func(string) bool) (ops []any, err error) {
	err = l.Each(ctx, n, n.Children, func(c *reads.Node) error {
		switch {
		case c.Stat.EphemeralOwner != 0:
			row := c.Row("", "")
			return exitWith(exitRefused, "refused: %s is in use by %s%s", n.Path, wording.Who(node.Owner(row.Owner), row.Session), wording.ForHow(row.Since, time.Now()))
		case !part(c.Name()):
			return exitWith(exitRefused, "refused: %s is no part of it; remove that first", c.Path)
		}
		below, err := removalOf(ctx, l, c, isOfParty)
		ops = append(ops, below...)
		return err
	})
	return append(ops, &zk.DeleteRequest{Path: l.Session.Full(n.Path), Version: n.Stat.Version}), err
}
