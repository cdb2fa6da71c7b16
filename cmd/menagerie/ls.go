package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/bench/terminal"
	reads "github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// lsOptions is the command line of ls.
type lsOptions struct {
	path                         string
	asJSON, long, recurse, watch bool
}

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
The state may have changed by the time it is printed. Without -l no line is longer than 100
columns; a text that is cut ends with "...".

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
			switch len(args) {
			case 0:
				o.path = "/"
			default:
				if o.path = args[0]; o.path != "/" {
					if err := onePath(cmd, args); err != nil {
						return err
					}
				}
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

func onePath(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage("PATH is missing, such as /locks/nightly")
	case 1:
		return checkPath(args[0])
	}
	return usage("want one PATH, found %q too", args[1])
}

// view is what ls has seen.
type view struct {
	target *object // nil if the path does not exist
	below  []*object
	chroot string // that does not exist either
}

func (a *app) list(cmd *cobra.Command, o lsOptions) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	s, err := a.connect(ctx, a.connectTimeout.value())
	if err != nil {
		return err
	}
	defer goodbye(s)
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var looked atomic.Pointer[zkconn.Epoch]
	waits, shown := context.WithCancel(bounded)
	defer shown()
	go untilSilent(waits, a.connectTimeout.value(), &looked, func() { cancel(errUnreachable) })
	var last []byte
	first := true
	err = follow(bounded, s, redraw, o.watch, func(ctx context.Context, l *look) error {
		looked.Store(l.Epoch)
		v, err := l.view(ctx, o)
		if err != nil {
			return err
		}
		shown()
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
	var coded *exitError
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case bounded.Err() != nil:
		return a.contextError(context.Cause(bounded), a.connectTimeout.value(), nil)
	}
	return a.sessionError(err)
}

// untilSilent calls silent when limit has passed without an answer in the epochs that looks had. A look at a large
// tree may take longer than that, and each of its answers shows that the servers are there.
func untilSilent(ctx context.Context, limit time.Duration, looked *atomic.Pointer[zkconn.Epoch], silent func()) {
	heard := time.Now()
	for rest(ctx, time.Until(heard.Add(limit))) {
		if e := looked.Load(); e != nil && e.Heard().After(heard) {
			heard = e.Heard()
		}
		if time.Since(heard) >= limit {
			silent()
			return
		}
	}
}

// redraw is the shortest time between two frames of --watch.
const redraw = 100 * time.Millisecond

// follow calls show with a look at the servers. It calls show again when something that show has read
// changes, at most once every pause. If again is false, it calls show once.
func follow(ctx context.Context, s *zksync.Session, pause time.Duration, again bool, show func(context.Context, *look) error) error {
	return looking(ctx, s, func(ctx context.Context, l *look) error {
		for {
			if again {
				l.Changed = make(chan struct{}, 1)
			}
			err := show(ctx, l)
			switch {
			case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
				// The watches are not set again if the connection was lost meanwhile.
				if err := l.Epoch.Await(ctx); err != nil {
					return err
				}
			case err != nil || !again:
				return err
			default:
				select {
				case <-l.Changed:
				case <-l.Epoch.Over():
					return zkconn.ErrOver
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			l.Stop()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// view reads what is to be shown.
func (l *look) view(ctx context.Context, o lsOptions) (*view, error) {
	l.Brief = false
	n, err := l.node(ctx, o.path)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return l.missing(ctx, o.path)
	}
	v := new(view)
	if v.target, err = l.describe(ctx, n); err != nil {
		return nil, err
	}
	l.Brief = !o.long && !o.asJSON
	return v, l.descend(ctx, n, v.target, o.recurse, &v.below)
}

// descend adds the children of n that are not part of it.
func (l *look) descend(ctx context.Context, n *reads.Node, o *object, recurse bool, all *[]*object) error {
	return l.Each(ctx, n, o.rest, func(c *reads.Node) error {
		found, err := l.describe(ctx, c)
		if err != nil {
			return err
		}
		*all = append(*all, found)
		if !recurse {
			return nil
		}
		return l.descend(ctx, c, found, recurse, all)
	})
}

// missing is the view of a path that does not exist. With --watch it watches the nearest parent that exists:
// the servers would keep a watch of a node that may never come.
func (l *look) missing(ctx context.Context, at string) (*view, error) {
	v := new(view)
	root := l.Session.Full("/")
	if _, there, err := l.Epoch.Exists(ctx, root); err != nil {
		return nil, err
	} else if !there {
		v.chroot = root
	}
	for full := l.Session.Full(at); l.Changed != nil && full != "/"; {
		full = path.Dir(full)
		if err := reads.Absent(l.Watch(ctx, full, true)); err != nil {
			return nil, err
		}
		if _, there, err := l.Epoch.Exists(ctx, full); err != nil || there {
			return v, err
		}
	}
	return v, nil
}

// show prints a view. Its error is that of ls if the path does not exist.
func (a *app) show(w *bytes.Buffer, v *view, o lsOptions) error {
	if o.asJSON {
		if err := printView(w, v, o); err != nil {
			return err
		}
	} else if v.target != nil {
		writeView(w, v, o, time.Now())
	}
	switch {
	case v.target != nil && v.target.State == "denied":
		return failure("%s %s", shorten(o.path), denied)
	case v.target != nil:
		return nil
	case v.chroot != "":
		return exitWith(exitNoSuchPath, "%s does not exist, and neither does the chroot %s", shorten(o.path), shorten(v.chroot))
	}
	return exitWith(exitNoSuchPath, "%s does not exist", shorten(o.path))
}

// printView prints the view for programs.
func printView(w *bytes.Buffer, v *view, o lsOptions) error {
	var all any
	switch {
	case v.target == nil:
		all = []object{}
	case v.target.queue && !o.recurse:
		all = v.target.Entries
	case v.target.State == "directory" && !o.recurse:
		all = append([]*object{}, v.below...)
	default:
		all = append([]*object{v.target}, v.below...)
	}
	return writeJSON(w, all, !o.watch)
}

func printJSON(w io.Writer, v any) error { return writeJSON(w, v, true) }

func writeJSON(w io.Writer, v any, indent bool) error {
	enc := json.NewEncoder(w)
	if indent {
		enc.SetIndent("", "  ")
	}
	enc.SetEscapeHTML(false)
	return outputError(enc.Encode(v))
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

func outputError(err error) error {
	if err != nil {
		return failure("cannot write the output: %v", err)
	}
	return nil
}
