package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// workOptions is the command line of queue work.
type workOptions struct {
	queueOptions
	parallel, attempts int
	backOff, most      time.Duration
	drain              time.Duration // how long CMD goes on after a signal
}

func (a *app) queueWorkCommand() *cobra.Command {
	var o workOptions
	var capacity count
	parallel, attempts := count(1), count(10)
	backOff, most := positiveDuration(time.Second), positiveDuration(time.Minute)
	grace, drain := graceDuration(5*time.Second), graceDuration(30*time.Second)
	cmd := &cobra.Command{
		Use:   "work PATH [-n N] [--max-attempts K] [--back-off D] [--max-back-off D] [--drain D] -- CMD ARGS...",
		Short: "Run a command on each element of a queue, until a signal comes",
		Long: `Runs CMD on each element of the queue PATH, on up to N at a time, as "queue receive" does on one. If CMD
fails, which is any exit code but 0, the element comes again after --back-off, after twice that the next
time, and so on up to --max-back-off. After K attempts it is a dead letter: see "queue dead". So is an
element that comes again after its last attempt, because no process has ended that. Outages of the
servers and lost sessions do not end the command.

CMD reads the element from its standard input. It also gets MENAGERIE_VALUE, the element, in its
environment (not if that is longer than 100 KB or has a zero byte), MENAGERIE_ID, which is the same in
each attempt, MENAGERIE_ATTEMPT, MENAGERIE_PATH, and MENAGERIE_TOKEN. CMD runs in a process group of its
own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the groups. After the first one no further
element is received, and what runs has --drain to succeed; an element whose CMD does not comes again at
once. A second one ends CMD at once.

If an element is lost (no server has answered for about half of the session timeout, or its node was
removed), its whole group gets SIGTERM, and SIGKILL if it has not ended after --grace; so it does at
the end of --drain.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    1  servers unreachable for --connect-timeout when it starts, or another failure
    2  wrong command line, or the queue has another capacity
  126  CMD cannot be executed, also later: its element comes again
  127  CMD was not found, also later
  130  ended by SIGINT, or CMD was (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie queue work /queues/mails -n 4 -- sh -c './send.sh "$MENAGERIE_VALUE"'
  menagerie queue work /queues/mails --max-attempts 3 --back-off 10s -- ./send.sh`,
	}
	flags := cmd.Flags()
	flags.VarP(&parallel, "parallel", "n", "run CMD on up to `N` elements at a time")
	flags.Var(&attempts, "max-attempts", "an element is a dead letter after `K` attempts")
	flags.Var(&backOff, "back-off", "an element comes again after `D`, and after twice that each later time")
	flags.Var(&most, "max-back-off", "it comes again after `D` at most")
	flags.Var(&drain, "drain", "let CMD go on for `D` after a signal")
	flags.Var(&grace, "grace", "wait `D` between SIGTERM and SIGKILL to CMD")
	flags.Var(&capacity, "capacity", "the queue has at most `N` elements; all who use it must give the same (0: no bound)")
	a.explainDash(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		o.grace, o.drain, o.capacity = time.Duration(grace), time.Duration(drain), int(capacity)
		o.parallel, o.attempts, o.backOff, o.most = int(parallel), int(attempts), backOff.value(), most.value()
		if o.lockOptions, err = a.lockOptions(cmd, args, o.lockOptions); err != nil {
			return err
		}
		if o.most < o.backOff {
			return usage("--max-back-off %v is shorter than --back-off %v", o.most, o.backOff)
		}
		return a.runWork(cmd.Context(), o)
	}
	return cmd
}

// runWork works until a signal comes, which is passed on to every CMD.
func (a *app) runWork(ctx context.Context, o workOptions) error {
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
	ctx, end := context.WithCancelCause(ctx)
	c := &crew{app: a, workOptions: o, program: program, ctx: ctx, end: end, all: map[chan os.Signal]bool{}}
	var hurry context.CancelFunc
	c.now, hurry = context.WithCancel(context.Background())
	defer hurry()
	signals := make(chan os.Signal, 16)
	notify(signals, forwardedSignals...)
	defer signal.Stop(signals)
	go func() { // as long as the process
		for sig := range signals {
			if ctx.Err() != nil {
				hurry()
			}
			end(&interruption{signal: sig})
			c.signal(sig)
		}
	}()
	s, err := a.connect(ctx, o.patience, zksync.WithName(filepath.Base(o.argv[0])))
	if err != nil {
		return err
	}
	defer func() { _ = (*session.Session)(s).CloseWithin(closeLimit) }() // a session that cannot be ended now expires
	if err = a.queueThere(&vigil{s: s, ctx: ctx}, o.queueOptions); err == nil {
		err = o.queue(s).Work(ctx, o.parallel, c.run,
			zkqueue.WithBackOff(o.backOff, o.most), zkqueue.WithMaxAttempts(o.attempts), zkqueue.WithGrace(o.drain))
	}
	if i, ok := interrupted(ctx); ok {
		return exitWith(i.exitCode(), "%v", i)
	}
	if cause := context.Cause(ctx); cause != nil { // CMD cannot be executed any more
		return cause
	}
	if err != nil {
		return a.sessionError(err)
	}
	return nil
}

// crew is the CMDs that run.
type crew struct {
	*app
	workOptions
	program string
	ctx     context.Context // of Work: ends with the first signal
	end     context.CancelCauseFunc
	now     context.Context // ends with the second one

	mu  sync.Mutex
	all map[chan os.Signal]bool // of each CMD, the signals for it
}

// signal passes a signal on to every CMD.
func (c *crew) signal(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for signals := range c.all {
		select {
		case signals <- sig:
		default:
		}
	}
}

// begin returns the signals for one CMD, and has done end that.
func (c *crew) begin() (signals chan os.Signal, done func()) {
	signals = make(chan os.Signal, 16)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[signals] = true
	return signals, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, signals)
	}
}

// run runs CMD on an element.
func (c *crew) run(ctx context.Context, d *zkqueue.Delivery[[]byte]) error {
	err := c.work(ctx, d)
	if err == nil {
		return nil
	}
	fmt.Fprintf(c.stderr, "menagerie: %s: element %s, attempt %d: %s\n", c.path, d.ID(), d.Attempt, oneLine(err.Error()))
	if c.stopped() { // that is no failure of the element, as Work learns from the cause
		return fmt.Errorf("%w: %w", context.Cause(c.ctx), err)
	}
	return err
}

// stopped reports whether a signal has come.
func (c *crew) stopped() bool { return c.ctx.Err() != nil }

// work runs CMD, and returns why it has failed.
func (c *crew) work(ctx context.Context, d *zkqueue.Delivery[[]byte]) error {
	stdin, env, err := handOver(d)
	if err != nil {
		return fmt.Errorf("the element cannot be handed over: %w", err)
	}
	defer stdin.Close()
	signals, done := c.begin()
	defer done()
	if c.stopped() { // by a signal that this CMD would not get
		return context.Cause(c.ctx)
	}
	lease, name := d.Lease(), filepath.Base(c.argv[0])
	p, err := child.StartWith(stdin, c.program, c.argv, append(append(os.Environ(), pathEnv+"="+c.path, tokenEnv+"="+lease.Token().String()), env...), lease.Valid)
	if err != nil {
		if errors.Is(err, child.ErrNotFound) || errors.Is(err, fs.ErrPermission) { // else all elements would become dead letters
			c.end(cannotRun(err))
		}
		return err
	}
	defer context.AfterFunc(c.now, func() { p.Terminate(0) })()
	switch lost := c.attend(p, ctx.Done(), lease.Valid, signals, c.grace); {
	case lost && lease.Err() != nil, !lease.Valid():
		return fmt.Errorf("lost while %s was running: it comes again", name)
	case lost:
		return fmt.Errorf("%s had not ended after --drain", name)
	case p.ExitCode() == exitSignal+int(syscall.SIGINT):
		// In front of a terminal CMD gets a Ctrl-C, and this process does not. Like a shell, it ends with CMD.
		c.end(&interruption{signal: os.Interrupt})
	}
	if code := p.ExitCode(); code != 0 {
		return fmt.Errorf("%s has ended with exit code %d", name, code)
	}
	return nil
}
