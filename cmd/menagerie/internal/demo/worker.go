package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// compute is how long a worker thinks between reading and writing: long enough that two
// workers inside at once would be sure to lose an increment.
const compute = 500 * time.Microsecond

// longEvery is how many holds there are for each long one.
const longEvery = 200

// haltNote is how often a worker that halts, or holds for long, says that it holds.
const haltNote = 5 * time.Millisecond

// Stages of a hold at which a worker can be told to stop and wait for its death.
const (
	beforeWrite = "before"
	afterWrite  = "after"
)

// WorkerConfig tells a worker process what to do. It travels on the command line.
type WorkerConfig struct {
	Servers string
	Timeout time.Duration
	Options []zksync.SessionOption // more of the session, which do not travel
	Path    string                 // of the lock
	Dir     string                 // where counter and journal are
	Index   int
	Workers int
	Rounds  int
	// HaltRound is the round in which the worker reports that it holds and then waits to
	// be killed, at HaltStage; 0 is never.
	HaltRound int
	HaltStage string
	// Long is how long one hold in longEvery lasts, at random; 0 is for none.
	Long time.Duration
}

const (
	counterName = "counter"
	journalName = "journal"
)

// worker is one process of a demo at work.
type worker struct {
	cfg     WorkerConfig
	out     io.Writer
	mutex   *zksync.Mutex
	file    *counterFile
	journal *journal
	// rounds is how many this worker has done, its dead predecessors included; unknown
	// until it has read the file once. From then on it does not believe the file, which
	// would hide a lost increment.
	rounds  int
	unknown bool
	// enough is closed when no more rounds shall begin, met when all have met.
	enough chan struct{}
	met    chan struct{}
}

// Work is the life of a worker process: its rounds, then the meeting. It tells the parent
// on out what happens, one word and a number per line, and hears from it on in: "enough" is the end of the
// rounds, "go" the end of the meeting, the end of the stream the end of the demo.
func Work(ctx context.Context, cfg WorkerConfig, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := newWorker(cfg, out)
	if err != nil {
		return err
	}
	defer w.close()
	go func() {
		defer cancel()
		w.listen(in)
	}()
	opts := slices.Concat(cfg.Options, []zksync.SessionOption{
		zksync.WithTimeout(cfg.Timeout), zksync.WithName(fmt.Sprintf("demo worker %d", cfg.Index)),
	})
	s, err := zksync.Connect(ctx, cfg.Servers, opts...)
	if err != nil {
		return err
	}
	defer s.Close()
	w.mutex = zksync.NewMutex(s, cfg.Path)
	for w.unknown || w.rounds < cfg.Rounds && !isClosed(w.enough) {
		if err := w.round(ctx); err != nil {
			return err
		}
	}
	w.say(wordMeet, w.rounds)
	<-ctx.Done()
	if isClosed(w.met) {
		return nil
	}
	return ctx.Err()
}

// listen hears what the parent says, up to the end of the meeting.
func (w *worker) listen(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case wordEnough:
			close(w.enough)
		case wordGo:
			close(w.met)
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func newWorker(cfg WorkerConfig, out io.Writer) (*worker, error) {
	file, err := openCounter(filepath.Join(cfg.Dir, counterName), cfg.Workers)
	if err != nil {
		return nil, err
	}
	journal, err := openJournal(filepath.Join(cfg.Dir, journalName))
	if err != nil {
		_ = file.close()
		return nil, err
	}
	return &worker{
		cfg: cfg, out: out, file: file, journal: journal, unknown: true,
		enough: make(chan struct{}), met: make(chan struct{}),
	}, nil
}

func (w *worker) close() {
	_ = w.file.close()
	_ = w.journal.close()
}

// round is one hold. If the lease is lost in the middle the round does not count, and the
// caller comes back.
func (w *worker) round(ctx context.Context) error {
	lease, err := w.mutex.LockContext(ctx)
	if errors.Is(err, zksync.ErrSessionExpired) {
		return nil
	}
	if err != nil {
		return err
	}
	// A failed release is finished by the session behind the scenes, and a lost lease
	// needs none.
	defer func() { _ = lease.Unlock() }()
	if err := w.note(entered, lease); err != nil {
		return err
	}
	if err := w.increment(ctx, lease); err != nil && !errors.Is(err, zksync.ErrLost) {
		return err
	}
	if lease.Valid() {
		if err := w.note(holds, lease); err != nil {
			return err
		}
	}
	if lease.Valid() {
		return w.note(left, lease)
	}
	w.say(wordLost, w.rounds)
	return w.note(lost, lease)
}

// increment is what needs the lock: read, compute, write.
func (w *worker) increment(ctx context.Context, lease *zksync.Lease) error {
	r, err := w.file.read()
	if err != nil {
		return err
	}
	if w.unknown {
		w.rounds, w.unknown = r.rounds[w.cfg.Index], false
	}
	if w.rounds >= w.cfg.Rounds {
		return nil // the predecessor died when it had done everything
	}
	time.Sleep(compute)
	if w.cfg.Long > 0 && rand.IntN(longEvery) == 0 {
		if err := w.hold(ctx, lease, time.After(w.cfg.Long)); err != nil {
			return err
		}
	}
	if err := w.halt(ctx, lease, beforeWrite, w.rounds+1); err != nil {
		return err
	}
	if err := w.fence(lease); err != nil {
		return err
	}
	r.counter++
	r.rounds[w.cfg.Index]++
	r.token = lease.Token()
	if err := w.file.write(r); err != nil {
		return err
	}
	w.rounds++
	if err := w.note(wrote, lease); err != nil {
		return err
	}
	if err := w.halt(ctx, lease, afterWrite, w.rounds); err != nil {
		return err
	}
	w.say(wordRound, w.rounds)
	return nil
}

// fence refuses to write under a lease that is no longer valid or that a newer one has
// superseded. A process that was asleep too long finds out here. What is left is the time
// between this check and the write, some microseconds: to close that too, the file would
// have to check the token itself, and then it would not be an unprotected file.
func (w *worker) fence(lease *zksync.Lease) error {
	now, err := w.file.read()
	if err != nil {
		return err
	}
	if !lease.Valid() || now.token.Compare(lease.Token()) > 0 {
		return zksync.ErrLost
	}
	return nil
}

// halt reports a hold and waits for the end of this process, in the round and at the stage
// that the parent has chosen. As long as it lives it goes on saying that it holds.
func (w *worker) halt(ctx context.Context, lease *zksync.Lease, stage string, round int) error {
	if round != w.cfg.HaltRound || stage != w.cfg.HaltStage {
		return nil
	}
	w.say(wordHolding, round)
	if err := w.hold(ctx, lease, nil); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// hold says again and again that it holds, for as long as that is so, or until it is enough.
func (w *worker) hold(ctx context.Context, lease *zksync.Lease, enough <-chan time.Time) error {
	for lease.Valid() {
		if err := w.note(holds, lease); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-enough:
			return nil
		case <-time.After(haltNote):
		}
	}
	return nil
}

func (w *worker) note(what event, lease *zksync.Lease) error {
	return w.journal.append(entry{event: what, worker: w.cfg.Index, pid: os.Getpid(), token: lease.Token()})
}

// say tells the parent. If it does not listen it is gone, and the end of standard input
// says so too.
func (w *worker) say(word string, n int) { fmt.Fprintf(w.out, "%s %d\n", word, n) }
