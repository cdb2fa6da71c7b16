package recipes_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Every call is struck by everything that servers and networks do to it, at each of its requests, and ends in time.
func TestAcceptance113EveryCallEndsInTimeWhateverItsServersDo(t *testing.T) {
	type op struct {
		name string
		prep func(v *env, s *zksync.Session) func(ctx context.Context)
	}
	held := func(v *env, kind string) {
		o := v.session()
		switch kind {
		case "m":
			v.lock(zksync.NewMutex(o, lockPath))
		case "r":
			_, _ = zkrwmutex.New(o, lockPath).RLockContext(context.Background())
		case "s":
			_, _ = zksemaphore.NewWeighted(o, semPath, 3).AcquireLease(context.Background(), 2)
		}
	}
	ops := []op{
		{"lock fresh", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, "/x/y/z").LockContext(ctx) }
		}},
		{"lock held", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "m")
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, lockPath).LockContext(ctx) }
		}},
		{"lock at the limit", func(v *env, s *zksync.Session) func(context.Context) {
			v.put(lockPath, "")
			v.srv.SetSequence(lockPath, math.MaxInt32)
			held(v, "m")
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, lockPath).LockContext(ctx) }
		}},
		{"two local", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "m")
			m := zksync.NewMutex(s, lockPath)
			return func(ctx context.Context) { go m.LockContext(ctx); _, _ = m.LockContext(ctx) }
		}},
		{"try", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksync.NewMutex(s, lockPath).TryLockContext(ctx) }
		}},
		{"write behind read", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "r")
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
		{"acquire", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).AcquireLease(ctx, 2) }
		}},
		{"acquire held", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "s")
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).AcquireLease(ctx, 2) }
		}},
		{"acquire too many", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "s")
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).AcquireLease(ctx, 5) }
		}},
		{"resize", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "s")
			return func(ctx context.Context) { _ = zksemaphore.NewWeighted(s, semPath, 3).Resize(ctx, 5) }
		}},
		{"available", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) { _, _ = zksemaphore.NewWeighted(s, semPath, 3).Available(ctx) }
		}},
		{"contenders", func(v *env, s *zksync.Session) func(context.Context) {
			held(v, "m")
			return func(ctx context.Context) { _, _ = zksync.Contenders(ctx, s, lockPath) }
		}},
		{"multi", func(v *env, s *zksync.Session) func(context.Context) {
			return func(ctx context.Context) {
				_, _ = zksync.MultiLock(zksync.NewMutex(s, "/a"), zksync.NewMutex(s, "/b"), zksync.NewMutex(s, "/c")).LockContext(ctx)
			}
		}},
	}
	faults := []string{"hold", "freeze", "partition", "dropreplies", "droprequests", "refuse", "losereply then refuse", "error -1"}
	for _, o := range ops {
		for _, f := range faults {
			for k := 1; k <= 8; k++ {
				t.Run(fmt.Sprintf("%s/%s/%d", o.name, f, k), func(t *testing.T) {
					inProcess(t, func(t *testing.T, v *env) {
						s := v.session()
						run := o.prep(v, s)
						v.quiet()
						var n atomic.Int32
						var undo func()
						gate := make(chan struct{})
						id := s.ID()
						remove := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
							if q.Session != id || q.Op == zktest.Ping || q.Op == zktest.Connect || q.Op == zktest.CloseSession {
								return zktest.Verdict{}
							}
							i := int(n.Add(1))
							if f == "hold" && i >= k {
								return zktest.Verdict{Hold: gate}
							}
							if f == "error -1" && i >= k {
								return zktest.Verdict{Fate: zktest.Fail, Code: -1}
							}
							if i != k {
								return zktest.Verdict{}
							}
							switch f {
							case "freeze":
								undo = v.srv.Freeze()
							case "partition":
								undo = v.srv.Partition(id)
							case "dropreplies":
								undo = v.srv.DropReplies(id)
							case "droprequests":
								undo = v.srv.DropRequests(id)
							case "refuse":
								undo = v.srv.Refuse()
								go v.srv.Disconnect(id)
							case "losereply then refuse":
								undo = v.srv.Refuse()
								return zktest.Verdict{Fate: zktest.LoseReply}
							}
							return zktest.Verdict{}
						})
						ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
						defer cancel()
						start := time.Now()
						run(ctx)
						if took := time.Since(start); took > 150*time.Millisecond {
							t.Errorf("took %v", took)
						}
						remove()
						close(gate)
						if undo != nil {
							undo()
						}
					})
				})
			}
		}
	}
}
