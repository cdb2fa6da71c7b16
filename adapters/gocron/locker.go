package zkgocron

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/go-menagerie/menagerie/zksync"
)

// Locker is a gocron.Locker: each job has a lock of its own. Give each scheduler a Locker of its own.
type Locker struct {
	s       *zksync.Session
	dir     string
	atLeast time.Duration
	opts    []zksync.Option

	mu   sync.Mutex
	kept map[string]*hold // by the names of the jobs
}

// hold is a gocron.Lock: the lock of a job during a run, and until its time has passed.
type hold struct {
	of      *Locker
	job     string
	lease   *zksync.Lease
	since   time.Time
	running bool
	timer   *time.Timer // releases; nil during the run, and if its end releases
}

// NewLocker names the directory of the locks. All processes give their jobs the same names (gocron.WithName), and dir the same
// options.
//
// A lock is kept for atLeast from the begin of the run, however short that is. So a process whose clock is behind finds it taken
// when its tick comes, and does not run the same tick again. Give more than the clocks differ by, and less than the time between
// two ticks. The next tick of the same Locker may come earlier than that.
func NewLocker(s *zksync.Session, dir string, atLeast time.Duration, opts ...zksync.Option) *Locker {
	return &Locker{s: s, dir: strings.TrimSuffix(dir, "/"), atLeast: atLeast, opts: opts, kept: make(map[string]*hold)}
}

// Lock implements gocron.Locker. If another process runs the job, the error is zksync.ErrNotAcquired, and gocron skips the tick. It
// fails at once if the session is not zksync.Session.Healthy, and waits for the servers at most a third of the session timeout: else
// the ticks of an outage would all run at its end.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	if h := l.again(job); h != nil {
		return h, nil
	}
	if err := l.s.Healthy(); err != nil {
		return nil, err
	}
	// A lease keeps only the values of its context.
	ctx, cancel := context.WithTimeout(ctx, l.s.Timeout()/3)
	defer cancel()
	lease, err := zksync.NewMutex(l.s, l.dir+"/"+nodeOf(job), l.opts...).TryLockContext(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begin(job, lease), nil
}

// again begins a run under the lease of the previous one, if that is still kept.
func (l *Locker) again(job string) *hold {
	l.mu.Lock()
	h := l.kept[job]
	if h == nil || h.running {
		l.mu.Unlock()
		return nil
	}
	if h.timer != nil && h.timer.Stop() && h.lease.Valid() {
		defer l.mu.Unlock()
		return l.begin(job, h.lease)
	}
	l.mu.Unlock()
	_ = h.lease.Unlock() // it was lost, or is being released, which must come before our request
	return nil
}

func (l *Locker) begin(job string, lease *zksync.Lease) *hold {
	h := &hold{of: l, job: job, lease: lease, since: time.Now(), running: true}
	l.kept[job] = h
	return h
}

// Unlock implements gocron.Lock: the run has ended. It returns zksync.ErrLost if the lock was lost meanwhile, which gocron
// ignores; the logger of the session has it.
func (h *hold) Unlock(context.Context) error {
	h.of.mu.Lock()
	if !h.running {
		h.of.mu.Unlock()
		return zksync.ErrReleased
	}
	h.running = false
	left := h.of.atLeast - time.Since(h.since)
	if left > 0 && h.lease.Valid() {
		h.timer = time.AfterFunc(left, func() { _ = h.release() })
		h.of.mu.Unlock()
		return nil
	}
	h.of.mu.Unlock()
	return h.release()
}

// release makes the job free for all.
func (h *hold) release() error {
	err := h.lease.Unlock()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.of.kept[h.job] == h {
		delete(h.of.kept, h.job)
	}
	return err
}

// Lease is the lease under which this Locker's scheduler runs a job, or nil. The function of the job can stop when it is lost
// (Done), and fence its writes (Token, Guard): gocron does not stop it.
func (l *Locker) Lease(job string) *zksync.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.kept[job]; h != nil && h.running {
		return h.lease
	}
	return nil
}

// nodeOf is the name of the node of a job: escaped as in the path of a URL. A name that the servers refuse, or of more than 200
// bytes, is "%-" and its hash, which no other name contains.
func nodeOf(job string) string {
	switch name := url.PathEscape(job); {
	case name == "", name == ".", name == "..", len(name) > 200:
		sum := sha256.Sum256([]byte(job))
		return "%-" + hex.EncodeToString(sum[:])
	default:
		return name
	}
}
