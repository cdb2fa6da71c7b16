package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// What tells CMD about its element, besides its standard input.
const (
	valueEnv   = "MENAGERIE_VALUE"
	attemptEnv = "MENAGERIE_ATTEMPT"
	elementEnv = "MENAGERIE_ID"
)

// longestEnv is a limit for values in the environment: Linux accepts 128 KB in a variable, name and all.
const longestEnv = 100 << 10

// nackLimit is how long an element is given back at most, when CMD has failed. A session that ends gives it back, too.
const nackLimit = 2 * time.Second

// queueOptions is the command line of the commands of queue.
type queueOptions struct {
	lockOptions
	capacity int
	delay    time.Duration
	priority int
}

func (o queueOptions) queue(s *zksync.Session) *zkqueue.Queue[[]byte] {
	opts := []zksync.Option{zksync.WithCodec(zksync.Raw)}
	if o.capacity > 0 {
		opts = append(opts, zkqueue.WithCapacity(o.capacity))
	}
	return zkqueue.New[[]byte](s, o.path, opts...)
}

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue put|take|receive|work|dead|redrive PATH ...",
		Short: "Put elements into a queue, take them, or run a command on them",
		Long: `An element is a sequence of bytes, at most about a megabyte. It stays in the queue when the process
that put it ends. "queue take" removes the first element and prints it. "queue receive" runs a command
on it, and removes it when the command has succeeded. If the command fails, or its process dies, the
element is delivered again, to this or another process. "queue work" does that for one element after
the other; one that fails too often becomes a dead letter, for "queue dead" and "queue redrive".

A program that uses the queue with the package zkqueue sees the bytes through its codec. The
default is JSON: put '"text"' for it, with the quotes.`,
		Example: `  menagerie queue put /queues/mails alice && menagerie queue take /queues/mails
  menagerie queue put /q bob && menagerie queue receive /q -- sh -c 'echo "mail to $MENAGERIE_VALUE"'`,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.queuePutCommand(), a.queueTakeCommand(), a.queueReceiveCommand(), a.queueWorkCommand(),
		a.queueDeadCommand(), a.queueRedriveCommand())
	for _, c := range cmd.Commands() {
		c.DisableFlagsInUseLine = true
	}
	return cmd
}

// queueFlags adds the flags that all commands of queue have.
func queueFlags(cmd *cobra.Command, wait *positiveDuration, capacity *count) {
	cmd.Flags().Var(wait, "wait", "wait `D` at most, counted from the start of the process (default: for ever)")
	cmd.Flags().Var(capacity, "capacity", "the queue has at most `N` elements; all who use it must give the same (0: no bound)")
}

func (a *app) queuePutCommand() *cobra.Command {
	var o queueOptions
	var wait, delay positiveDuration
	var capacity count
	cmd := &cobra.Command{
		Use:   "put PATH [VALUE] [--delay D | --priority N] [--capacity N] [--wait D | --try]",
		Short: "Put an element into a queue",
		Long: `Puts VALUE at the end of the queue PATH; without VALUE it puts standard input, less a final newline.
With --capacity it waits for room. With --delay no consumer gets the element before that time, by the
clock of the servers.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  it is in the queue
    1  servers unreachable for --connect-timeout, or another failure; after an error while the request
       was under way it may be in the queue, and the text says so
    2  wrong command line, or the queue has another capacity
   75  the queue is full (--try), or was until the end of --wait
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie queue put /queues/mails alice
  date | menagerie queue put /queues/dates
  menagerie queue put /queues/mails bob --delay 10m
  menagerie queue put /queues/mails carol --priority -1`,
	}
	queueFlags(cmd, &wait, &capacity)
	cmd.Flags().Var(&delay, "delay", "do not deliver it for `D`")
	cmd.Flags().IntVar(&o.priority, "priority", 0, "its priority is `N`: smaller ones are delivered first, equal ones in order")
	cmd.Flags().BoolVar(&o.try, "try", false, "do not wait for room")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.wait, o.capacity, o.delay = wait.value(), int(capacity), delay.value()
		switch {
		case len(args) == 0:
			return usage("PATH is missing, such as /queues/mails")
		case len(args) > 2:
			return usage("want PATH and VALUE, found %q too", shorten(args[2]))
		case o.delay > 0 && o.priority != 0:
			return usage("--delay and --priority exclude each other: choose one")
		case o.wait > 0 && o.try:
			return usage("--wait and --try exclude each other: choose one")
		case o.try && (o.delay > 0 || o.priority != 0):
			return usage("--try has no meaning with --delay and --priority, use --wait")
		}
		o.path, o.patience = args[0], a.patience(cmd, o.wait)
		if err := checkPath(o.path); err != nil {
			return err
		}
		if len(args) == 2 {
			return a.runPut(cmd.Context(), o, []byte(args[1]))
		}
		value, err := io.ReadAll(io.LimitReader(os.Stdin, 2<<20)) // twice what the servers accept
		if err != nil {
			return failure("cannot read standard input: %v", err)
		}
		return a.runPut(cmd.Context(), o, bytes.TrimSuffix(value, []byte("\n")))
	}
	return cmd
}

func (a *app) runPut(ctx context.Context, o queueOptions, value []byte) error {
	return a.waiting(ctx, o.lockOptions, "queue put", func(w *vigil) error {
		q := o.queue(w.s)
		ok, err := true, error(nil)
		if place := []zkqueue.PutOption{zkqueue.WithDelay(o.delay), zkqueue.WithPriority(o.priority)}; o.try {
			ok, err = q.Offer(w.ctx, value, place...)
		} else {
			err = q.Put(w.ctx, value, place...)
		}
		if err == nil && !ok {
			return exitWith(exitNotObtained, "%s is full", o.path)
		}
		if zksync.Ambiguous(err) {
			return failure("no answer from %s: the element may be in %s now, or get there: %s", a.target(), o.path, forPeople(err))
		}
		return err
	})
}

func (a *app) queueTakeCommand() *cobra.Command {
	var o queueOptions
	var wait positiveDuration
	var capacity count
	cmd := &cobra.Command{
		Use:   "take PATH [--capacity N] [--wait D | --try]",
		Short: "Remove the first element of a queue and print it",
		Long: `Waits for the first element of the queue PATH, prints it with a newline, and removes it. An element that
cannot be printed, as on a full disk, stays. Use "queue receive" for work that must not get lost. A
PATH without a queue is reported, and no queue is created.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  the element was removed and printed
    1  servers unreachable for --connect-timeout, or another failure; if the element was printed and may
       come again, the text says so
    2  wrong command line, or the queue has another capacity
   75  there was no element (--try), or none until the end of --wait
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie queue put /queues/mails alice && menagerie queue take /queues/mails
  menagerie queue take /queues/mails --try || echo "no mails"`,
	}
	queueFlags(cmd, &wait, &capacity)
	cmd.Flags().BoolVar(&o.try, "try", false, "do not wait for an element")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := onePath(cmd, args); err != nil {
			return err
		}
		o.wait, o.capacity = wait.value(), int(capacity)
		if o.wait > 0 && o.try {
			return usage("--wait and --try exclude each other: choose one")
		}
		o.path, o.patience = args[0], a.patience(cmd, o.wait)
		return a.runTake(cmd.Context(), o)
	}
	return cmd
}

func (a *app) runTake(ctx context.Context, o queueOptions) error {
	return a.waiting(ctx, o.lockOptions, "queue take", func(w *vigil) error {
		if err := a.queueThere(w, o); err != nil {
			return err
		}
		d, err := receiveFor(w.ctx, o.queue(w.s), o)
		if err != nil {
			return err
		}
		if err := w.end(); err != nil {
			giveBack(d)
			return err
		}
		a.hurried(w.signals)
		// First print, then remove. A closed pipe is an error here, and does not end this process.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		if _, err := a.stdout.Write(append(d.Value, '\n')); err != nil {
			giveBack(d)
			return failure("the element cannot be printed, and stays in %s: %v", o.path, err)
		}
		if err := d.Ack(context.Background()); err != nil {
			return failure("the element was printed, but it could not be recorded on %s that it is taken: it may come again in %s: %s", a.target(), o.path, forPeople(err))
		}
		return nil
	})
}

// receiveFor is Receive, or with --try what is there now.
func receiveFor(ctx context.Context, q *zkqueue.Queue[[]byte], o queueOptions) (*zkqueue.Delivery[[]byte], error) {
	if !o.try {
		return q.Receive(ctx)
	}
	none := exitWith(exitNotObtained, "%s has no element", o.path)
	if _, there, err := q.Peek(ctx); err != nil || !there {
		return nil, cmp.Or(err, none)
	}
	brief, cancel := context.WithTimeout(ctx, tryLimit) // others may be quicker
	defer cancel()
	d, err := q.Receive(brief)
	if err != nil && brief.Err() != nil && ctx.Err() == nil {
		return nil, none
	}
	return d, err
}

// tryLimit is how long --try waits for an element that it has seen.
const tryLimit = time.Second

// queueThere waits until something was put into the queue for the first time. What only takes makes no queue, or a mistyped path
// would be one.
func (a *app) queueThere(w *vigil, o queueOptions) error {
	for n, err := range zkwatch.Data(w.ctx, w.s, o.path+"/"+layout.Queue) {
		switch {
		case err != nil:
			return err
		case n.OK:
			return nil
		}
		if err := refuseOther(w, o.path); err != nil {
			return err
		}
		if o.try {
			return exitWith(exitNotObtained, "%s has no element: nothing was ever put there", o.path)
		}
		fmt.Fprintf(a.stderr, "menagerie: nothing was ever put into %s on %s: waiting for that\n", o.path, a.target())
	}
	return nil
}

// refuseOther refuses a path where something else than a queue is.
func refuseOther(w *vigil, path string) error {
	return tree.Looking(w.ctx, w.s, func(ctx context.Context, l *tree.Look) error {
		n, err := l.At(ctx, path)
		if n == nil || err != nil {
			return err
		}
		if err := layout.RefuseOther(layout.Queue, n.Data, n.Children); err != nil {
			return fmt.Errorf("queue %s: %w", path, err)
		}
		return nil
	})
}

// giveBack has others get the element. If that fails, it comes again with the end of the session, or came already.
func giveBack(d *zkqueue.Delivery[[]byte]) {
	brief, cancel := context.WithTimeout(context.Background(), nackLimit)
	defer cancel()
	_ = d.Nack(brief)
}

func (a *app) queueReceiveCommand() *cobra.Command {
	var o queueOptions
	var wait positiveDuration
	var capacity count
	grace := graceDuration(5 * time.Second)
	cmd := &cobra.Command{
		Use:   "receive PATH [--capacity N] [--wait D] [--grace D] -- CMD ARGS...",
		Short: "Run a command on the first element of a queue, and remove it if that succeeds",
		Long: `Waits until there is an element in the queue PATH, and runs CMD on it. While CMD runs nobody else gets
the element. It is removed if CMD succeeds, which is exit code 0. If CMD fails, or this process
dies or is cut off, the element comes again at its place, to this command or another
process. So CMD may run more than once for an element, and must be safe to start again.

CMD reads the element from its standard input. It also gets MENAGERIE_VALUE, the element, in its
environment (not if that is longer than 100 KB or has a zero byte), MENAGERIE_ATTEMPT, which is 1 for
the first delivery of the element, MENAGERIE_ID, which is the same in each, MENAGERIE_PATH, and
MENAGERIE_TOKEN. The token is a fencing token: have your storage refuse a smaller one than the greatest
it has seen for the element. CMD runs in a process group of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT
are passed on to the group.

If the element is lost (no server has answered for about half of the session timeout, or its node was
removed), the whole group gets SIGTERM, and SIGKILL if it has not ended after --grace.

Without --servers the command uses ` + defaultServers + `.

Exit codes: that of CMD (128+n if signal n ended it), or
    0  CMD has succeeded, and the element is removed
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or the queue has another capacity; CMD did not run
   75  there was no element until the end of --wait; CMD did not run
   76  lost while CMD ran, or before its success could be recorded: the element may come again
  126  CMD cannot be executed
  127  CMD was not found
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie queue put /q bob && menagerie queue receive /q -- sh -c 'echo "mail to $MENAGERIE_VALUE"'
  while menagerie queue receive /queues/mails --wait 1s -- wc -c; do :; done 2>/dev/null`,
	}
	queueFlags(cmd, &wait, &capacity)
	cmd.Flags().Var(&grace, "grace", "wait `D` between SIGTERM and SIGKILL to CMD after a loss")
	a.explainDash(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		o.wait, o.capacity, o.grace = wait.value(), int(capacity), time.Duration(grace)
		if o.lockOptions, err = a.lockOptions(cmd, args, o.lockOptions); err != nil {
			return err
		}
		return a.runReceive(cmd.Context(), o)
	}
	return cmd
}

// runReceive is the whole of receive: find CMD, wait for an element, run CMD, and acknowledge the element or give it back.
func (a *app) runReceive(ctx context.Context, o queueOptions) error {
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
	return a.waiting(ctx, o.lockOptions, filepath.Base(o.argv[0]), func(w *vigil) error {
		if err := a.queueThere(w, o); err != nil {
			return err
		}
		d, err := o.queue(w.s).Receive(w.ctx)
		if err != nil {
			return err
		}
		if err = w.end(); err == nil {
			err = a.workOn(w, d, o, program)
		}
		if err != nil {
			giveBack(d)
			return err
		}
		if err := d.Ack(context.Background()); err != nil {
			return exitWith(exitLost, "lost %s on %s before it could be recorded that %s has succeeded", o.path, a.target(), o.argv[0])
		}
		return nil
	})
}

// workOn runs CMD on an element.
func (a *app) workOn(w *vigil, d *zkqueue.Delivery[[]byte], o queueOptions, program string) error {
	stdin, env, err := handOver(d)
	if err != nil {
		return failure("cannot hand the element to %s: %v", o.argv[0], err)
	}
	defer stdin.Close()
	o.stdin, o.env = stdin, env
	return a.runUnder(w.s, d.Lease(), o.lockOptions, program, w.signals)
}

// handOver is how CMD gets an element: its standard input, which the caller closes, and its environment.
func handOver(d *zkqueue.Delivery[[]byte]) (stdin *os.File, env []string, err error) {
	env = []string{attemptEnv + "=" + strconv.Itoa(d.Attempt), elementEnv + "=" + d.ID()}
	if len(d.Value) <= longestEnv && bytes.IndexByte(d.Value, 0) < 0 {
		env = append(env, valueEnv+"="+string(d.Value))
	}
	stdin, err = fileOf(d.Value)
	return stdin, env, err
}

// fileOf returns a file without a name with this data, at its beginning. A pipe would need somebody who writes
// as long as the command reads.
func fileOf(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "menagerie-element-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // on systems that cannot remove an open file it stays
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
