package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/bench/terminal"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/top"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) topCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top [PATH]",
		Short: "Watch locks: who holds, for how long, who waits, what is stuck",
		Long: `Shows all locks at PATH and below it, and keeps the picture up to date. Without PATH it
shows the root (of the chroot). From top to bottom it answers: is anything wrong? Who holds
what, and is that longer than usual? Who waits, behind whom? Which locks are in a deadlock?
Which holders are probably dead, and what can one do? What could not be read?

The holds that are usual are those that begin and end while top runs. It changes nothing on
the servers. ? shows the keys; q quits. Without a terminal it prints one frame.

Exit codes:
    0  q was pressed, or the frame is printed
    1  no server has answered for --connect-timeout, or another failure
    2  wrong command line
  130  interrupted (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie lock /locks/nightly -- sleep 5 &
  menagerie top /locks | cat    # one frame
  menagerie top                 # q quits`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := rootOf(cmd, args)
			if err != nil {
				return err
			}
			if out, ok := a.stdout.(*os.File); ok && terminal.Is(out) && os.Getenv("TERM") != "dumb" {
				return a.topLive(cmd, root, out)
			}
			return a.topOnce(cmd, root)
		},
	}
}

// topColumns is how wide the frame is without a terminal.
const topColumns = 120

// topOnce prints one frame.
func (a *app) topOnce(cmd *cobra.Command, root string) error {
	all := a.survey(nil, root)
	return a.looking(cmd, all.Heard, func(ctx context.Context, s *zksync.Session, _ func()) error {
		all.Session = s
		v, err := all.Once(ctx)
		if err != nil {
			return err
		}
		frame := top.Frame(v, top.State{Dir: root, Still: true, Flags: a.copied()}, topColumns, 0, time.Now())
		_, err = fmt.Fprintln(a.stdout, frame)
		return outputError(err)
	})
}

// copied are the flags of a command that is printed to be copied, as far as they are no secrets.
func (a *app) copied() []string {
	if a.servers == "" || a.servers == os.Getenv(serversEnv) {
		return nil
	}
	return []string{"--servers", a.servers}
}

// topLive shows frames on the terminal until the user quits.
func (a *app) topLive(cmd *cobra.Command, root string, out *os.File) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	roots := make(chan string, 1)
	roots <- root
	m := top.New(root, a.copied(), func(root string) {
		select { // only the newest matters
		case <-roots:
		default:
		}
		roots <- root
	})
	p := tea.NewProgram(m, tea.WithOutput(out), tea.WithoutSignalHandler())
	a.stderr = notes{p}
	context.AfterFunc(ctx, p.Quit)
	ended := make(chan error, 1)
	go func() {
		err := a.topViews(ctx, roots, func(v *survey.View) { p.Send(v) })
		cancel(err)
		ended <- err
	}()
	_, err := p.Run()
	if m.Interrupted {
		cancel(&interruption{os.Interrupt})
	}
	cancel(errQuit) // unless it has ended for another reason
	failed := <-ended
	switch {
	case err != nil:
		return failure("cannot show frames on this terminal: %v; %q prints one frame", err, "menagerie top | cat")
	case errors.Is(context.Cause(ctx), errQuit):
		return nil
	}
	return failed
}

// errQuit is the cause of a context that the user has ended.
var errQuit = errors.New("quit")

// topViews shows views of the newest of roots until ctx ends.
func (a *app) topViews(ctx context.Context, roots <-chan string, show func(*survey.View)) error {
	limit := a.connectTimeout.value()
	s, err := a.connect(ctx, limit)
	if err != nil {
		return err
	}
	defer goodbye(s)
	root := <-roots
	for {
		live, stop := context.WithCancelCause(ctx)
		waits, answered := context.WithCancel(live)
		look := a.survey(s, root)
		go untilSilent(waits, limit, look.Heard, func() { stop(errUnreachable) })
		ended := make(chan error, 1)
		go func() {
			ended <- look.Live(live, func(v *survey.View) {
				if !v.At.IsZero() {
					answered()
				}
				show(v)
			})
		}()
		select {
		case root = <-roots:
			stop(nil)
			<-ended
		case err := <-ended:
			cause := context.Cause(live)
			stop(nil)
			if cause != nil {
				return a.contextError(cause, limit, nil)
			}
			return a.sessionError(err)
		}
	}
}

// notes shows messages in the frame: standard error is on the same terminal.
type notes struct{ *tea.Program }

func (n notes) Write(line []byte) (int, error) {
	n.Send(top.Note(strings.TrimPrefix(strings.TrimSpace(string(line)), "menagerie: ")))
	return len(line), nil
}
