package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) waitCommand() *cobra.Command {
	var wait positiveDuration
	cmd := &cobra.Command{
		Use:   "wait PATH [--wait D]",
		Short: "Wait until no process holds or waits at a path",
		Long: `Waits until no process holds or waits at PATH, without joining its queue. It takes what has holders or
waiters:
  lock, rwlock, semaphore, election   until no entry is in the queue
  once, flight key                    until no process runs it
  barrier, double barrier             until no party waits or is inside
  phaser, group                       until no party is registered, or no member is left
  wait group                          until no living member is not done
  condition                           until no process waits
  durable lock, slots                 until none is held; waiters do not count

It returns as soon as that was so once: others may come at any time. A path that does not exist is free. So is a
lock with a lock delay that has no entry. A lock that its process keeps for the next time (WithLinger) is held.
Use "latch wait" for a latch and "gate wait" for a gate.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  no process holds or waits
    1  PATH may not be read, servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or what is at PATH has no holders or waiters
   75  a process still holds or waits (--wait)
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie lock /locks/nightly -- sleep 1 &
  menagerie wait /locks/nightly --wait 1h && date
  menagerie wait -v /locks/nightly`,
		Args: onePath,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := lockOptions{path: args[0], wait: wait.value(), patience: a.patience(cmd, wait.value()), beside: true}
		return a.waiting(cmd.Context(), o, "wait", func(w *vigil) error {
			err := tree.Follow(w.ctx, w.s, redraw, true, func(ctx context.Context, l *tree.Look) error { return untilFree(ctx, l, o.path) })
			if errors.Is(err, errFree) {
				return nil
			}
			return err
		})
	}
	cmd.Flags().Var(&wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	return cmd
}

// errFree ends a wait: no process holds or waits.
var errFree = errors.New("free")

// untilFree is one look of wait, which watches what it waits for. In a queue that is the last entry alone: before it has gone
// the queue cannot be empty, and so the release of each entry ahead does not wake this process.
func untilFree(ctx context.Context, l *tree.Look, path string) error {
	changed := l.Changed
	l.Changed = nil
	o, err := l.Object(ctx, path)
	l.Changed = changed
	if err != nil {
		return err
	}
	if err := attendable(o, path); err != nil {
		return err
	}
	rows := present(o)
	if o.Queue && rows[len(rows)-1].Owner != (tree.Owner{}) { // without an owner, it may be one that we may not read, so not watch
		return watchEntry(ctx, l, rows[len(rows)-1])
	}
	if o, err = l.Object(ctx, path); err != nil {
		return err
	}
	return attendable(o, path)
}

// attendable returns nil if processes hold or wait at o, errFree if none does, or why that is not known.
func attendable(o *tree.Object, path string) error {
	switch {
	case o == nil:
		return errFree
	case o.State == "denied":
		return failure("%s is %s", shorten(path), tree.Denied)
	case o.Kind == layout.Word(layout.Latch), o.Kind == layout.Word(layout.Gate):
		return usage(`the waiters at the %s %s leave no node: use "menagerie %s wait"`, o.Kind, shorten(path), o.Kind)
	case o.Kind != "empty" && !slices.Contains(attended, o.Kind):
		return usage("%s is a %s, which has no holders or waiters that others see; want a %s", shorten(path), o.Kind, strings.Join(attended, ", "))
	case len(present(o)) == 0:
		return errFree
	}
	return nil
}

// attended are the kinds whose states show which processes take part.
var attended = words(layout.Mutex, layout.RWMutex, layout.Semaphore, layout.Election, layout.Once, layout.FlightKey, layout.Barrier,
	layout.DoubleBarrier, layout.Phaser, layout.Group, layout.WaitGroup, layout.Cond, layout.Durable, layout.Slots)

func words(kinds ...string) (all []string) {
	for _, k := range kinds {
		all = append(all, layout.Word(k))
	}
	return all
}

// present are the entries of processes that take part: not a dead member of a wait group, and not the job of a schedule.
func present(o *tree.Object) (rows []tree.Row) {
	for _, r := range o.Entries {
		switch r.State {
		case zksync.Held, zksync.Waiting, "working", "living": // a party that is still to arrive; a member
			rows = append(rows, r)
		}
	}
	return rows
}
