package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

// groupOptions is the command line of group join.
type groupOptions struct {
	lockOptions
	id, data, items, assign string
}

func (a *app) groupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "group",
		Short:   "Be a member of a group while a command runs, and get items to work on",
		Example: `  menagerie group join /groups/api --id "$(uname -n)" -- sleep 1`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.groupJoinCommand())
	return cmd
}

func (a *app) groupJoinCommand() *cobra.Command {
	var o groupOptions
	grace := graceDuration(5 * time.Second)
	cmd := &cobra.Command{
		Use:   "join PATH --id ID [--data TEXT] [--items FILE --assign FILE] -- CMD ARGS...",
		Short: "Join a group while CMD runs",
		Long: `Joins the group at PATH as ID, and runs CMD. When CMD ends, the member leaves. Signals are passed on to CMD.

With --items the items, one a line, are divided among all members that do the same. Those of this
member are in the file of --assign, one a line. It is replaced (by a rename) whenever they
change. Then CMD gets SIGHUP: trap it in the first second, or it ends CMD. During that second the
file is empty. An item is in one such file at a time, as long as CMD has stopped with an item within
--grace of its disappearance; then it may be given to another member.`,
		Example: `  menagerie group join /groups/api --id "$(uname -n)" --data "$(uname -n):80" -- sleep 1`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usage("PATH is missing, want: menagerie group join PATH --id ID -- CMD")
			}
			if o.path, o.argv, err = commandOf(cmd.Name(), a.args, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			if o.id == "" || (o.items == "") != (o.assign == "") {
				return usage("--id is missing, or one of --items and --assign")
			}
			o.grace, o.patience = time.Duration(grace), a.patience(cmd, 0)
			if err := checkPath(o.path); err != nil {
				return err
			}
			return a.runGroup(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", defaultID(), "the member's `name`, which no other has")
	flags.StringVar(&o.data, "data", "", "what the member says of itself")
	flags.StringVar(&o.items, "items", "", "`FILE` with the items that are divided, one a line")
	flags.StringVar(&o.assign, "assign", "", "`FILE` in which CMD finds those of this member")
	flags.Var(&grace, "grace", "give CMD `D` to stop with an item that has left the file")
	a.explainDash(cmd)
	return cmd
}

func (a *app) runGroup(ctx context.Context, o groupOptions) error {
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
	var items []string
	if o.items != "" {
		data, err := os.ReadFile(o.items)
		if err != nil {
			return failure("%v", err)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				items = append(items, line)
			}
		}
	}
	return a.waiting(ctx, o.lockOptions, filepath.Base(o.argv[0]), func(w *vigil) error {
		g := zkgroup.New(w.s, o.path)
		m, err := g.Join(w.ctx, zkgroup.Member{ID: o.id, Data: []byte(o.data)})
		if err != nil {
			return err
		}
		if err := w.end(); err != nil {
			return err
		}
		return a.runMember(g, m, o, items, program, w.signals)
	})
}

// runMember runs CMD, and tells it its items.
func (a *app) runMember(g *zkgroup.Group, m *zkgroup.Membership, o groupOptions, items []string, program string, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	mine := &assigned{file: o.assign, ready: ready.Done()}
	if o.assign != "" {
		if err := mine.write(); err != nil {
			return failure("%v", err)
		}
	}
	c, err := child.Start(program, o.argv, append(os.Environ(), pathEnv+"="+o.path), func() bool { return true })
	if err != nil {
		return cannotRun(err)
	}
	ended := make(chan error, 1)
	if len(items) > 0 {
		go func() {
			ended <- g.Assign(ctx, m, items, func(ctx context.Context, item string, l *zksync.Lease) error {
				return mine.own(ctx, c, item, l, o.grace)
			})
		}()
	}
	for {
		select {
		case sig := <-signals:
			c.Signal(sig)
		case err := <-ended:
			c.Terminate(o.grace)
			return failure("the items cannot be divided: %v", err)
		case <-c.Done():
			cancel()
			leaving, stop := context.WithTimeout(context.Background(), closeLimit)
			defer stop()
			if len(items) > 0 {
				select {
				case <-ended:
				case <-leaving.Done(): // the servers are silent; the leases go with the session
				}
			}
			_ = m.Leave(leaving) // else it goes with the session
			if code := c.ExitCode(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		}
	}
}

// assigned is the items of this member, and the file in which CMD finds them.
type assigned struct {
	file  string
	ready <-chan struct{} // closed when CMD has had time to trap SIGHUP

	mu    sync.Mutex
	items []string
}

// write replaces the file. mu is held.
func (a *assigned) write() error {
	text := strings.Join(a.items, "\n")
	if text != "" {
		text += "\n"
	}
	next := a.file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, a.file)
}

// change writes the file and tells CMD.
func (a *assigned) change(c *child.Child, change func()) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	if err := a.write(); err != nil {
		return err
	}
	c.Signal(syscall.SIGHUP)
	return nil
}

var errGivenUp = errors.New("the item is given up")

// own has CMD work on an item until ctx ends.
func (a *assigned) own(ctx context.Context, c *child.Child, item string, l *zksync.Lease, grace time.Duration) error {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return errGivenUp
	}
	err := a.change(c, func() { a.items = append(a.items, item); slices.Sort(a.items) })
	if err != nil {
		return zkgroup.Stop(err) // the next attempt would find the same
	}
	<-ctx.Done()
	err = a.change(c, func() { a.items = slices.DeleteFunc(a.items, func(s string) bool { return s == item }) })
	select {
	case <-c.Done():
	case <-l.Done():
	case <-time.After(grace):
	}
	return errors.Join(err, errGivenUp)
}
