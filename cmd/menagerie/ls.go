package main

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/bench/terminal"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// lsOptions is the command line of ls.
type lsOptions struct {
	path                         string
	asJSON, long, recurse, watch bool
	whole                        bool // cut nothing: -l, or no terminal
}

// redraw is the shortest time between two frames of --watch.
const redraw = 100 * time.Millisecond

func (a *app) lsCommand() *cobra.Command {
	var o lsOptions
	cmd := &cobra.Command{
		Use:   "ls [PATH] [-l] [-r] [--watch] [--json]",
		Short: "Show what is at a path: who holds, who waits",
		Long: `Shows what is at PATH. Of a lock, read-write lock, semaphore or election it shows the
holders and waiters in the order of their turn, also those of Curator, kazoo and go-zookeeper.
Of a once, barrier, double barrier, latch, gate, phaser, wait group, condition or flight
it shows the state and the members. Of a directory it shows the recipes below it. Without
PATH it shows the root (of the chroot).

It decides by the nodes alone. Different recipes may leave the same nodes; then it says so.
The state may have changed by the time it is printed. On a terminal no line is longer than
100 columns without -l; a text that is cut ends with "...".

Exit codes:
    0  shown
    1  PATH may not be read, no server has answered for --connect-timeout, or another failure
    2  wrong command line
    4  PATH does not exist
  130  interrupted (143 by SIGTERM, 129 by SIGHUP), which is how --watch ends`,
		Example: `  menagerie lock /locks/nightly -- sleep 5 &
  menagerie ls /locks/nightly
  menagerie ls -r
  menagerie ls /locks/nightly --json | jq '.[0].owner.host'
  menagerie ls /locks --watch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.path, err = rootOf(cmd, args); err != nil {
				return err
			}
			return a.list(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.asJSON, "json", false, "print an array of objects; with --watch one on each line")
	flags.BoolVarP(&o.long, "long", "l", false, "also show nodes and sessions, and cut nothing")
	flags.BoolVarP(&o.recurse, "recursive", "r", false, "also show everything below")
	flags.BoolVar(&o.watch, "watch", false, "print again at each change, until interrupted")
	return cmd
}

func (a *app) list(cmd *cobra.Command, o lsOptions) error {
	o.whole = o.long || !terminal.Is(a.stdout)
	var looked atomic.Pointer[zkconn.Epoch]
	heard := func() time.Time {
		if e := looked.Load(); e != nil {
			return e.Heard()
		}
		return time.Time{}
	}
	return a.looking(cmd, heard, func(ctx context.Context, s *zksync.Session, shown func()) error {
		var last []byte
		first := true
		return tree.Follow(ctx, s, redraw, o.watch, func(ctx context.Context, l *tree.Look) error {
			looked.Store(l.Epoch)
			v, err := l.View(ctx, o.path, o.recurse, !o.long && !o.asJSON)
			if err != nil {
				return err
			}
			shown()
			if !o.watch {
				a.hearView(ctx, v)
			}
			var frame bytes.Buffer
			if err := a.show(&frame, v, o); err != nil && (first || !o.watch) {
				_, _ = a.stdout.Write(frame.Bytes())
				return err
			} else if err != nil {
				frame.WriteString(err.Error() + "\n") // it was there, and may come again
			}
			if !first && bytes.Equal(frame.Bytes(), last) {
				return nil
			}
			err = a.printFrame(frame.Bytes(), first, o)
			first, last = false, frame.Bytes()
			return err
		})
	})
}

// hearView adds to the holders of a view what the servers say against their sessions.
func (a *app) hearView(ctx context.Context, v *tree.View) {
	var rows []tree.Row
	all := append([]*tree.Object{}, v.Below...)
	if v.Target != nil {
		all = append(all, v.Target)
	}
	for _, o := range all {
		rows = append(rows, o.Entries...)
	}
	a.hear(ctx, hearLimit, rows)
	for _, o := range all {
		rows = rows[copy(o.Entries, rows):]
	}
}

// looking connects and calls f. It ends f's context with errUnreachable when no server has answered for --connect-timeout, by what
// heard returns, unless f has called shown before.
func (a *app) looking(cmd *cobra.Command, heard func() time.Time, f func(ctx context.Context, s *zksync.Session, shown func()) error) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	s, err := a.connect(ctx, a.connectTimeout.value())
	if err != nil {
		return err
	}
	defer goodbye(s)
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waits, shown := context.WithCancel(bounded)
	defer shown()
	go untilSilent(waits, a.connectTimeout.value(), heard, func() { cancel(errUnreachable) })
	err = f(bounded, s, shown)
	var coded *exitError
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case bounded.Err() != nil:
		return a.contextError(context.Cause(bounded), a.connectTimeout.value(), nil)
	}
	return a.sessionError(err)
}

// untilSilent calls silent when limit has passed without an answer, by what newest returns. A look at a large
// tree may take longer than that, and each of its answers shows that the servers are there.
func untilSilent(ctx context.Context, limit time.Duration, newest func() time.Time, silent func()) {
	heard := time.Now()
	for rest(ctx, time.Until(heard.Add(limit))) {
		if at := newest(); at.After(heard) {
			heard = at
		}
		if time.Since(heard) >= limit {
			silent()
			return
		}
	}
}

// show prints a view. Its error is that of ls if the path does not exist.
func (a *app) show(w *bytes.Buffer, v *tree.View, o lsOptions) error {
	for _, each := range append([]*tree.Object{v.Target}, v.Below...) {
		each.OmitNone()
	}
	if o.asJSON {
		if err := printView(w, v, o); err != nil {
			return err
		}
	} else if v.Target != nil {
		writeView(w, v, o, time.Now())
	}
	switch {
	case v.Target != nil && v.Target.State == "denied":
		return failure("%s is %s", shorten(o.path), tree.Denied)
	case v.Target != nil:
		return nil
	case v.Chroot != "":
		return exitWith(exitNoSuchPath, "%s does not exist, and neither does the chroot %s", shorten(o.path), shorten(v.Chroot))
	}
	return exitWith(exitNoSuchPath, "%s does not exist", shorten(o.path))
}

// printFrame prints what --watch shows: on a terminal in place of the last frame.
func (a *app) printFrame(frame []byte, first bool, o lsOptions) error {
	switch {
	case !o.watch || o.asJSON:
	case terminal.Is(a.stdout):
		frame = append([]byte("\x1b[H\x1b[2J"), frame...)
	case !first:
		frame = append([]byte("\n"), frame...)
	}
	_, err := a.stdout.Write(frame)
	return outputError(err)
}
