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
	settle                  time.Duration
}

func (a *app) groupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "group join PATH [--id ID] -- CMD ARGS...",
		Short:                      "Be a member of a group while a command runs, and get items to work on",
		Example:                    `  menagerie group join /groups/api --id "$(uname -n)" -- sleep 1`,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.groupJoinCommand())
	return cmd
}

func (a *app) groupJoinCommand() *cobra.Command {
	var o groupOptions
	grace, settle := graceDuration(5*time.Second), graceDuration(0)
	cmd := &cobra.Command{
		Use:   "join PATH [--id ID] [--data TEXT] [--items FILE --assign FILE] [--grace D] -- CMD ARGS...",
		Short: "Join a group while CMD runs",
		Long: `Joins the group at PATH as ID, and runs CMD. When CMD ends, the member leaves. Signals are passed on to CMD.

With --items the members divide the items of that file, one a line, among them. Each reads it once, at
the start, and writes its own items into the file of --assign, one a line, before CMD begins. When they
change, the file is replaced by a rename, and CMD (without its children) gets SIGHUP, on Linux only if
it traps it. So CMD must trap SIGHUP first and then read the file. Go and Java trap it for every
program, and end a program that does not handle it.
With --settle they change only when no member has come or gone for that long. Give all members the same.
An item is in one such file at a time if CMD stops working on a lost item within --grace; then another
member may get it.

Without --servers the command uses ` + defaultServers + `.

Exit codes: that of CMD (128+n if signal n ended it), or
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or a living member has ID; CMD did not run
  126  CMD cannot be executed
  127  CMD was not found
  130  interrupted while joining (143 by SIGTERM, 129 by SIGHUP)`,
		Example:               `  menagerie group join /groups/api --id "$(uname -n)" --data "$(uname -n):80" -- sleep 1`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usage("PATH is missing, want: menagerie group join PATH -- CMD ARGS...")
			}
			if o.path, o.argv, err = commandOf(cmd, a.args, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			if o.id == "" {
				return usage("--id is empty: give a name that no other member has")
			}
			if (o.items == "") != (o.assign == "") {
				return usage("--items and --assign belong together: give both or neither")
			}
			o.grace, o.settle, o.patience = time.Duration(grace), time.Duration(settle), a.patience(cmd, 0)
			if err := checkPath(o.path); err != nil {
				return err
			}
			return a.runGroup(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", defaultID(), "the member's name `ID`, which no other has")
	flags.StringVar(&o.data, "data", "", "`TEXT` that the member says of itself")
	flags.StringVar(&o.items, "items", "", "`FILE` with the items that are divided, one a line")
	flags.StringVar(&o.assign, "assign", "", "`FILE` in which CMD finds those of this member")
	flags.Var(&settle, "settle", "move items only when no member has come or gone for `D`")
	flags.Lookup("settle").DefValue = ""
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
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		mine := &assigned{file: o.assign, grace: o.grace, settle: o.settle, complete: make(chan struct{}), changed: make(chan struct{}, 1)}
		if o.assign != "" {
			if err := mine.divide(ctx, w, g, m, items); err != nil {
				return err
			}
		}
		if err := w.end(); err != nil {
			return err
		}
		err = mine.run(o, program, w.signals)
		cancel()
		mine.leave(m)
		return err
	})
}

// assigned is CMD, the items of this member, and the file in which CMD finds them.
type assigned struct {
	file    string
	grace   time.Duration
	settle  time.Duration
	changed chan struct{} // has an element when the file has changed while CMD runs
	ended   chan error    // has the error of Assign, and is closed; nil without items

	mu      sync.Mutex
	c       *child.Child // nil until CMD runs
	items   []string
	share   []string // what belongs to this member, once divided
	divided bool
	// complete is closed, and then nil, when all items of this member are in the file for the first time.
	complete chan struct{}
}

// divide has the items divided until ctx ends. It returns when those of this member are in the file. If another process keeps one
// of them for longer than a dead process could, that one comes later.
func (a *assigned) divide(ctx context.Context, w *vigil, g *zkgroup.Group, m *zkgroup.Membership, items []string) error {
	if err := a.write(); err != nil {
		return failure("%v", err)
	}
	complete := a.complete
	a.ended = make(chan error, 1)
	go func() {
		defer close(a.ended)
		a.ended <- g.Assign(ctx, m, items, a.own, zkgroup.WithShare(a.learn), zkgroup.WithSettle(a.settle))
	}()
	select {
	case <-complete:
	case <-time.After(w.s.Timeout() + a.settle):
	case err := <-a.ended:
		return undivided(err)
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
	return nil
}

func undivided(err error) error { return failure("the items cannot be divided: %v", err) }

// trapEvery is how often it is looked whether CMD traps SIGHUP, while there is one for it.
const trapEvery = 50 * time.Millisecond

// run runs CMD, and has it hear of each change of the file. A CMD that has just begun may not trap SIGHUP yet, and would die of it.
func (a *assigned) run(o groupOptions, program string, signals <-chan os.Signal) error {
	c, err := a.begin(o, program)
	if err != nil {
		return cannotRun(err)
	}
	var look <-chan time.Time
	for {
		select {
		case sig := <-signals:
			c.Signal(sig)
			continue
		case err := <-a.ended:
			c.Terminate(a.grace)
			return undivided(err)
		case <-c.Done():
			if code := c.ExitCode(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		case <-a.changed:
		case <-look:
		}
		look = nil
		if c.Traps(syscall.SIGHUP) {
			c.SignalCommand(syscall.SIGHUP)
		} else {
			look = time.After(trapEvery)
		}
	}
}

// begin starts CMD. The file does not change meanwhile.
func (a *assigned) begin(o groupOptions, program string) (c *child.Child, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.c, err = child.Start(program, o.argv, append(os.Environ(), pathEnv+"="+o.path), func() bool { return true })
	return a.c, err
}

// leave gives up the items and the membership. Without an answer they end with the session.
func (a *assigned) leave(m *zkgroup.Membership) {
	leaving, stop := context.WithTimeout(context.Background(), closeLimit)
	defer stop()
	if a.ended != nil {
		select {
		case <-a.ended:
		case <-leaving.Done():
		}
	}
	_ = m.Leave(leaving)
}

// write replaces the file. mu is held, or not needed yet.
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

// learn notes which items belong to this member.
func (a *assigned) learn(share []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(share)
	a.share, a.divided = share, true
	a.compare()
}

// compare notes when the whole share is in the file. mu is held.
func (a *assigned) compare() {
	if a.complete != nil && a.divided && slices.Equal(a.items, a.share) {
		close(a.complete)
		a.complete = nil
	}
}

// change changes the items and writes the file. It returns CMD, which hears of that, or nil if CMD has not begun.
func (a *assigned) change(change func()) (*child.Child, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	if err := a.write(); err != nil {
		return a.c, err
	}
	a.compare()
	if a.c != nil {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
	return a.c, nil
}

var errGivenUp = errors.New("the item is given up")

// own has CMD work on an item until ctx ends.
func (a *assigned) own(ctx context.Context, item string, l *zksync.Lease) error {
	if _, err := a.change(func() { a.items = append(a.items, item); slices.Sort(a.items) }); err != nil {
		return zkgroup.Stop(err) // the next attempt would find the same
	}
	<-ctx.Done()
	c, err := a.change(func() { a.items = slices.DeleteFunc(a.items, func(s string) bool { return s == item }) })
	if c != nil {
		select {
		case <-c.Done():
		case <-l.Done():
		case <-time.After(a.grace):
		}
	}
	return errors.Join(err, errGivenUp)
}
