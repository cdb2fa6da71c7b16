package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// earlyRound is the round of which a holder is killed where nobody knows how many rounds there will be.
const earlyRound = 5

// ErrStalled is returned when nothing has happened for so long that nothing will.
var ErrStalled = errors.New("demo: no progress")

// Config describes a demo.
type Config struct {
	// Servers, Timeout and Path are passed on to the workers: where the lock is.
	Servers string
	Timeout time.Duration
	Path    string

	Workers int
	Rounds  int
	// For is after how long the workers begin no more rounds, however many they have done; 0 is never.
	For time.Duration
	// Long is how long some holds last, at random; 0 is for none.
	Long time.Duration
	// Kill has one holder killed in the middle of its hold.
	Kill bool
	// Patience is how long nothing may happen; it covers a restart of the servers.
	Patience time.Duration

	// Command makes the process that will call Work with this configuration.
	Command func(WorkerConfig) *exec.Cmd
	// Out shows progress; Live says that it is a terminal.
	Out  io.Writer
	Live bool
}

// demo is a run. Its fields belong to the goroutine of Run.
type demo struct {
	cfg      Config
	dir      string
	journal  *journal
	screen   *screen
	messages chan message
	team     []*process // by worker
	alive    int        // processes that have not been waited for
	killed   int
	enough   bool // no more rounds
	released bool // the meeting has taken place
	// victim is the worker that is killed while it holds, in its round haltRound; -1 for
	// none (any more).
	victim    int
	haltRound int
	haltStage string
}

// Run runs a demo to its end and judges it. When ctx ends before, its workers end too and
// the cause of ctx is returned. Whatever happens, no process and no file is left.
func Run(ctx context.Context, cfg Config) (Result, error) {
	dir, err := os.MkdirTemp("", "menagerie-demo-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	d := &demo{
		cfg: cfg, dir: dir, screen: newScreen(cfg.Out, cfg.Live),
		messages: make(chan message), team: make([]*process, cfg.Workers), victim: -1,
	}
	if err := createCounter(filepath.Join(dir, counterName), cfg.Workers); err != nil {
		return Result{}, err
	}
	if d.journal, err = openJournal(filepath.Join(dir, journalName)); err != nil {
		return Result{}, err
	}
	defer d.journal.close()
	if cfg.Kill {
		d.victim = rand.IntN(cfg.Workers)
		d.haltRound = (cfg.Rounds + 1) / 2
		if cfg.For > 0 {
			d.haltRound = min(d.haltRound, earlyRound)
		}
		d.haltStage = []string{beforeWrite, afterWrite}[rand.IntN(2)]
	}
	err = d.play(ctx)
	d.dismissAll()
	d.screen.clear()
	if err != nil {
		return Result{}, err
	}
	return d.result()
}

// play starts the workers and listens to them until all have met and left.
func (d *demo) play(ctx context.Context) error {
	for i := range d.team {
		if err := d.start(i); err != nil {
			return err
		}
	}
	stalled := time.NewTimer(d.cfg.Patience)
	defer stalled.Stop()
	var over <-chan time.Time
	if d.cfg.For > 0 {
		over = time.After(d.cfg.For)
	}
	for d.alive > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stalled.C:
			return fmt.Errorf("%w for %v, %s rounds done", ErrStalled, d.cfg.Patience, share(d.done(), " of ", d.goal()))
		case <-over:
			d.callItEnough()
		case m := <-d.messages:
			if !m.ended {
				stalled.Reset(d.cfg.Patience)
			}
			if err := d.hear(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// start runs a process for worker i, the first or a replacement.
func (d *demo) start(i int) error {
	w := WorkerConfig{
		Servers: d.cfg.Servers, Timeout: d.cfg.Timeout, Path: d.cfg.Path, Dir: d.dir,
		Index: i, Workers: d.cfg.Workers, Rounds: d.cfg.Rounds, Long: d.cfg.Long,
	}
	if i == d.victim {
		w.HaltRound, w.HaltStage = d.haltRound, d.haltStage
	}
	p, err := startProcess(d.cfg.Command(w), i, d.messages)
	if err != nil {
		return fmt.Errorf("cannot start worker %d: %w", i, err)
	}
	if old := d.team[i]; old != nil {
		p.rounds = old.rounds
	}
	d.team[i] = p
	d.alive++
	if d.enough {
		p.enough()
	}
	return nil
}

// callItEnough has all workers begin no more rounds.
func (d *demo) callItEnough() {
	d.enough = true
	d.screen.note("time is over after %d rounds", d.done())
	for _, p := range d.team {
		p.enough()
	}
}

func (d *demo) hear(m message) error {
	p := m.from
	switch {
	case m.ended:
		d.alive--
		return d.ended(p, m.err)
	case m.word == wordRound:
		p.rounds = m.n
		d.screen.progress(d.done(), d.goal(), d.alive)
	case m.word == wordHolding:
		d.screen.note("worker %d (pid %d) holds the lock in round %d, %s its write: killing it with SIGKILL",
			p.index, p.pid(), m.n, d.haltStage)
		p.doomed = true
		p.kill()
	case m.word == wordLost:
		d.screen.note("worker %d (pid %d) lost its lease: the lock may be somebody else's by now", p.index, p.pid())
	case m.word == wordMeet:
		p.arrived, p.rounds = true, m.n
		d.meet()
	}
	return nil
}

// ended deals with the end of a process: the killed are replaced, the failed end the demo.
func (d *demo) ended(p *process, err error) error {
	if err == nil || d.released && wasKilled(p) {
		return nil
	}
	if !wasKilled(p) {
		return p.failure(err)
	}
	what := died
	if p.doomed {
		what = killed
		d.victim = -1
	}
	d.killed++
	if err := d.journal.append(entry{event: what, worker: p.index, pid: p.pid()}); err != nil {
		return err
	}
	if err := d.start(p.index); err != nil {
		return err
	}
	d.screen.note("worker %d (pid %d) is dead; pid %d takes its place; what it held is free when its session ends",
		p.index, p.pid(), d.team[p.index].pid())
	return nil
}

// meet lets everybody go once everybody is there.
func (d *demo) meet() {
	for _, p := range d.team {
		if !p.arrived {
			return
		}
	}
	d.released = true
	d.screen.note("all %d workers have met", d.cfg.Workers)
	for _, p := range d.team {
		p.release()
	}
}

// dismissAll ends all processes that are left and waits for them: politely, so that they
// end their sessions, but not for long.
func (d *demo) dismissAll() {
	for _, p := range d.team {
		if p != nil {
			p.dismiss()
		}
	}
	impatient := time.After(2 * time.Second)
	for d.alive > 0 {
		select {
		case m := <-d.messages:
			if m.ended {
				d.alive--
			}
		case <-impatient:
			for _, p := range d.team {
				if p != nil {
					p.kill()
				}
			}
		}
	}
}

// goal is how many rounds there will be, 0 if nobody knows.
func (d *demo) goal() int {
	if d.cfg.For > 0 {
		return 0
	}
	return d.cfg.Workers * d.cfg.Rounds
}

// expected is what the counter must be at the end.
func (d *demo) expected() int {
	if d.enough {
		return d.done()
	}
	return d.cfg.Workers * d.cfg.Rounds
}

func (d *demo) done() int {
	sum := 0
	for _, p := range d.team {
		if p != nil {
			sum += p.rounds
		}
	}
	return sum
}

// result judges by what is in the files.
func (d *demo) result() (Result, error) {
	counter, err := openCounter(filepath.Join(d.dir, counterName), d.cfg.Workers)
	if err != nil {
		return Result{}, err
	}
	defer counter.close()
	final, err := counter.read()
	if err != nil {
		return Result{}, err
	}
	entries, err := loadJournal(filepath.Join(d.dir, journalName))
	if err != nil {
		return Result{}, err
	}
	h := judge(entries)
	return Result{
		Workers: d.cfg.Workers, Rounds: d.cfg.Rounds, Expected: d.expected(), Counter: final.counter,
		Overlaps: h.overlaps, TokensMonotonic: h.ordered, Killed: d.killed, Holds: h.holds, Lost: h.lost,
	}, nil
}
