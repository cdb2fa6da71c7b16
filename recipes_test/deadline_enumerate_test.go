package recipes_test

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// bounded is a call that must end in time. prep does what comes before it, while all is well.
type bounded struct {
	name string
	prep func(v *env, s *zksync.Session) func(ctx context.Context)
}

// holdLock, holdRead and holdPermits have somebody else be there first.

func holdLock(v *env) { v.lock(zksync.NewMutex(v.session(), lockPath)) }

func holdRead(v *env) { _, _ = zkrwmutex.New(v.session(), lockPath).RLockContext(context.Background()) }

func holdPermits(v *env) {
	_, _ = zksemaphore.NewWeighted(v.session(), semPath, 3).AcquireLease(context.Background(), 2)
}

// boundedLocks are the calls of a mutex, and of several.
func boundedLocks() []bounded {
	return []bounded{
		{"lock fresh", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, "/x/y/z").LockContext(ctx) }
		}},
		{"lock held", func(v *env, s *zksync.Session) func(context.Context) {
			holdLock(v)
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, lockPath).LockContext(ctx) }
		}},
		{"lock at the limit", func(v *env, s *zksync.Session) func(context.Context) {
			v.put(lockPath, "")
			v.srv.SetSequence(lockPath, math.MaxInt32)
			holdLock(v)
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, lockPath).LockContext(ctx) }
		}},
		{"two local", func(v *env, s *zksync.Session) func(context.Context) {
			holdLock(v)
			m := zksync.NewMutex(s, lockPath)
			return func(ctx context.Context) { go m.LockContext(ctx); _, _ = m.LockContext(ctx) }
		}},
		{"try", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, lockPath).TryLockContext(ctx) }
		}},
		{"contenders", func(v *env, s *zksync.Session) func(context.Context) {
			holdLock(v)
			return func(ctx context.Context) { _, _ = zksync.Contenders(ctx, s, lockPath) }
		}},
		{"multi", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) {
				_, _ = zksync.MultiLock(zksync.NewMutex(s, "/a"), zksync.NewMutex(s, "/b"), zksync.NewMutex(s, "/c")).LockContext(ctx)
			}
		}},
	}
}

// boundedReads are the calls of a read-write lock.
func boundedReads() []bounded {
	return []bounded{
		{"write behind read", func(v *env, s *zksync.Session) func(context.Context) {
			holdRead(v)
			return func(ctx context.Context) { _, _ = zkrwmutex.New(s, lockPath).LockContext(ctx) }
		}},
		{"read", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zkrwmutex.New(s, lockPath).RLockContext(ctx) }
		}},
		{"try read", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zkrwmutex.New(s, lockPath).TryRLockContext(ctx) }
		}},
		{"downgrade", func(v *env, s *zksync.Session) func(context.Context) {
			rw := zkrwmutex.New(s, lockPath)
			l, _ := rw.LockContext(context.Background())
			return func(ctx context.Context) { _, _ = rw.Downgrade(ctx, l) }
		}},
		{"downgrade, local waiter", func(v *env, s *zksync.Session) func(context.Context) {
			rw := zkrwmutex.New(s, lockPath)
			l, _ := rw.LockContext(context.Background())
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_, _ = rw.LockContext(ctx)
			}()
			return func(ctx context.Context) { _, _ = rw.Downgrade(ctx, l) }
		}},
	}
}

// boundedPermits are the calls of a semaphore.
func boundedPermits() []bounded {
	return []bounded{
		{"acquire", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).AcquireLease(ctx, 2) }
		}},
		{"acquire held", func(v *env, s *zksync.Session) func(context.Context) {
			holdPermits(v)
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).AcquireLease(ctx, 2) }
		}},
		{"acquire too many", func(v *env, s *zksync.Session) func(context.Context) {
			holdPermits(v)
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).AcquireLease(ctx, 5) }
		}},
		{"resize", func(v *env, s *zksync.Session) func(context.Context) {
			holdPermits(v)
			return func(ctx context.Context) { _ = zksemaphore.NewWeighted(s, semPath, 3).Resize(ctx, 5) }
		}},
		{"available", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).Available(ctx) }
		}},
	}
}

// plight is what befalls a session from one of its requests on.
type plight struct {
	v      *env
	what   string
	id     int64 // the session
	struck atomic.Bool
	gate   chan struct{} // closed when what is held may go on
	undo   func()
}

// plights are all there are. "hold" and "error -1" strike every request from the first on.
var plights = []string{"hold", "freeze", "partition", "dropreplies", "droprequests", "refuse", "losereply then refuse", "error -1"}

// goesOn is asked what becomes of each request behind the one that was struck.
func (p *plight) goesOn(q *zktest.Request) zktest.Verdict {
	if q.Session != p.id || !proving.Counts(q) || !p.struck.Load() {
		return zktest.Verdict{}
	}
	switch p.what {
	case "hold":
		return zktest.Verdict{Hold: p.gate}
	case "error -1":
		return zktest.Verdict{Fate: zktest.Fail, Code: -1}
	}
	return zktest.Verdict{}
}

// begin lets that happen to the session which lasts until it is undone.
func (p *plight) begin(q *zktest.Request) zktest.Verdict {
	p.struck.Store(true)
	switch p.what {
	case "freeze":
		p.undo = p.v.srv.Freeze()
	case "partition":
		p.undo = p.v.srv.Partition(p.id)
	case "dropreplies":
		p.undo = p.v.srv.DropReplies(p.id)
	case "droprequests":
		p.undo = p.v.srv.DropRequests(p.id)
	case "refuse":
		p.undo = p.v.srv.Refuse()
		go p.v.srv.Disconnect(p.id)
	case "losereply then refuse":
		p.undo = p.v.srv.Refuse()
		return zktest.Verdict{Fate: zktest.LoseReply}
	}
	return p.goesOn(q)
}

// endsInTime makes the call while its session is struck.
func (c bounded) endsInTime(t *testing.T, v *env, what string, s *proving.Strike) {
	session := v.session()
	run := c.prep(v, session)
	v.quiet()
	p := &plight{v: v, what: what, id: session.ID(), gate: make(chan struct{})}
	calm := s.Falls(v.srv, p.begin)
	remove := v.srv.InterceptFunc(p.goesOn)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	run(ctx)
	if took := time.Since(start); took > 150*time.Millisecond {
		t.Errorf("%s: took %v", s.Name, took)
	}
	calm()
	remove()
	v.quiet() // a request that p was asked about before that may be striking still
	close(p.gate)
	if p.undo != nil {
		p.undo()
	}
}

// Every call is struck by everything that servers and networks do to it, at each of its requests, and ends in time.
func TestAcceptance113EveryCallEndsInTimeWhateverItsServersDo(t *testing.T) {
	for _, c := range slices.Concat(boundedLocks(), boundedReads(), boundedPermits()) {
		for _, what := range plights {
			t.Run(c.name+"/"+what, func(t *testing.T) {
				proving.EveryRequest(t, what, func(s *proving.Strike) {
					inProcess(t, func(t *testing.T, v *env) { c.endsInTime(t, v, what, s) })
				})
			})
		}
	}
}
