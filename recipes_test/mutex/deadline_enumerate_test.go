package mutex_test

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// bounded is a call that must end in time. prep does what comes before it, while all is well.
type bounded struct {
	name string
	prep func(v *proving.Env, s *zksync.Session) func(ctx context.Context)
}

// holdLock, holdRead and holdPermits have somebody else be there first.

func holdLock(v *proving.Env) { v.Lock(zksync.NewMutex(v.Session(), proving.LockPath)) }

func holdRead(v *proving.Env) {
	_, _ = zkrwmutex.New(v.Session(), proving.LockPath).RLockContext(context.Background())
}

func holdPermits(v *proving.Env) {
	_, _ = zksemaphore.NewWeighted(v.Session(), proving.SemPath, 3).AcquireLease(context.Background(), 2)
}

// boundedLocks are the calls of a mutex, and of several.
func boundedLocks() []bounded {
	return []bounded{
		{"lock fresh", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, "/x/y/z").LockContext(ctx) }
		}},
		{"lock held", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdLock(v)
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, proving.LockPath).LockContext(ctx) }
		}},
		{"lock at the limit", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			v.Put(proving.LockPath, "")
			v.Server.SetSequence(proving.LockPath, math.MaxInt32)
			holdLock(v)
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, proving.LockPath).LockContext(ctx) }
		}},
		{"two local", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdLock(v)
			m := zksync.NewMutex(s, proving.LockPath)
			return func(ctx context.Context) { go m.LockContext(ctx); _, _ = m.LockContext(ctx) }
		}},
		{"try", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, proving.LockPath).TryLockContext(ctx) }
		}},
		{"contenders", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdLock(v)
			return func(ctx context.Context) { _, _ = zksync.Contenders(ctx, s, proving.LockPath) }
		}},
		{"multi", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) {
				_, _ = zksync.MultiLock(zksync.NewMutex(s, "/a"), zksync.NewMutex(s, "/b"), zksync.NewMutex(s, "/c")).LockContext(ctx)
			}
		}},
	}
}

// boundedReads are the calls of a read-write lock.
func boundedReads() []bounded {
	return []bounded{
		{"write behind read", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdRead(v)
			return func(ctx context.Context) { _, _ = zkrwmutex.New(s, proving.LockPath).LockContext(ctx) }
		}},
		{"read", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zkrwmutex.New(s, proving.LockPath).RLockContext(ctx) }
		}},
		{"try read", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zkrwmutex.New(s, proving.LockPath).TryRLockContext(ctx) }
		}},
		{"downgrade", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			rw := zkrwmutex.New(s, proving.LockPath)
			l, _ := rw.LockContext(context.Background())
			return func(ctx context.Context) { _, _ = rw.Downgrade(ctx, l) }
		}},
		{"downgrade, local waiter", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			rw := zkrwmutex.New(s, proving.LockPath)
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
		{"acquire", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, proving.SemPath, 3).AcquireLease(ctx, 2) }
		}},
		{"acquire held", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdPermits(v)
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, proving.SemPath, 3).AcquireLease(ctx, 2) }
		}},
		{"acquire too many", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdPermits(v)
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, proving.SemPath, 3).AcquireLease(ctx, 5) }
		}},
		{"resize", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			holdPermits(v)
			return func(ctx context.Context) { _ = zksemaphore.NewWeighted(s, proving.SemPath, 3).Resize(ctx, 5) }
		}},
		{"available", func(v *proving.Env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, proving.SemPath, 3).Available(ctx) }
		}},
	}
}

// plight is what befalls a session from one of its requests on.
type plight struct {
	v      *proving.Env
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
		return zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeMarshalling}
	}
	return zktest.Verdict{}
}

// begin lets that happen to the session which lasts until it is undone.
func (p *plight) begin(q *zktest.Request) zktest.Verdict {
	p.struck.Store(true)
	switch p.what {
	case "freeze":
		p.undo = p.v.Server.Freeze()
	case "partition":
		p.undo = p.v.Server.Partition(p.id)
	case "dropreplies":
		p.undo = p.v.Server.DropReplies(p.id)
	case "droprequests":
		p.undo = p.v.Server.DropRequests(p.id)
	case "refuse":
		p.undo = p.v.Server.Refuse()
		go p.v.Server.Disconnect(p.id)
	case "losereply then refuse":
		p.undo = p.v.Server.Refuse()
		return zktest.Verdict{Fate: zktest.LoseReply}
	}
	return p.goesOn(q)
}

// endsInTime makes the call while its session is struck.
func (c bounded) endsInTime(t *testing.T, v *proving.Env, what string, s *proving.Strike) {
	session := v.Session()
	run := c.prep(v, session)
	v.Quiet()
	p := &plight{v: v, what: what, id: session.ID(), gate: make(chan struct{})}
	calm := s.Falls(v.Server, p.begin)
	remove := v.Server.InterceptFunc(p.goesOn)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	run(ctx)
	if took := time.Since(start); took > 150*time.Millisecond {
		t.Errorf("%s: took %v", s.Name, took)
	}
	calm()
	remove()
	v.Quiet() // a request that p was asked about before that may be striking still
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
					proving.InProcess(t, func(t *testing.T, v *proving.Env) { c.endsInTime(t, v, what, s) })
				})
			})
		}
	}
}
