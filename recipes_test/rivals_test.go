package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// Names that others give their nodes.
const (
	latchNode  = "_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f-latch-0000000000" // Curator's LeaderLatch
	olderNode  = "_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f-lock-0000000000"  // Curator's first semaphore
	permitNode = "0123456789abcdef0123456789abcdef"                         // kazoo's Semaphore
)

// refuses checks the error of a call on a path that others use in a way that does not go with ours.
func refuses(t *testing.T, err error, path, child string) {
	t.Helper()
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.NotErrorIs(t, err, zksync.ErrNotAcquired)
	for _, part := range []string{path, child, "use another path"} {
		require.ErrorContains(t, err, part)
	}
	var named *zksync.Error
	require.ErrorAs(t, err, &named)
	require.Equal(t, path, named.Path)
}

// electionCalls is every call of an election that tells or decides who leads.
var electionCalls = map[string]func(ctx context.Context, e *zkelection.Election) error{
	"Campaign":    func(ctx context.Context, e *zkelection.Election) error { _, err := e.Campaign(ctx); return err },
	"TryCampaign": func(ctx context.Context, e *zkelection.Election) error { _, err := e.TryCampaign(ctx); return err },
	"Leader":      func(ctx context.Context, e *zkelection.Election) error { _, err := e.Leader(ctx); return err },
	"Candidates":  func(ctx context.Context, e *zkelection.Election) error { _, err := e.Candidates(ctx); return err },
	"Run": func(ctx context.Context, e *zkelection.Election) error {
		return e.Run(ctx, func(context.Context, *zksync.Lease) error { panic("leads") })
	},
	"Observe": func(ctx context.Context, e *zkelection.Election) (err error) {
		for _, err = range e.Observe(ctx) {
		}
		return err
	},
}

func TestAnElectionRefusesThePathOfALeaderLatch(t *testing.T) {
	for name, call := range electionCalls {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				ctx, cancel := context.WithTimeout(context.Background(), v.patience())
				defer cancel()
				v.put(electionPath+"/"+latchNode, "")
				e := v.elections(1)[0]
				refuses(t, call(ctx, e), electionPath, latchNode)
				v.left(electionPath, 1, "nothing of ours")
				v.remove(electionPath + "/" + latchNode)
				require.NoError(t, v.get(e.Campaign).Unlock())
			})
		})
	}
}

// A latch that begins later heeds nobody of ours, and nobody of ours who leads or waits looks for it.
// Whoever comes, or looks again, refuses.
func TestAnElectionRefusesToGoOnBesideALaterLeaderLatch(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		es := v.elections(5)
		leader := v.get(es[0].Campaign)
		var waiting []*attempt
		for i, e := range es[1:4] {
			waiting = append(waiting, call(context.Background(), e.Campaign))
			v.settled(electionPath, i+2)
		}
		v.put(electionPath+"/"+latchNode, "")
		for _, call := range electionCalls {
			refuses(t, call(context.Background(), es[4]), electionPath, latchNode)
		}
		v.settled(electionPath, 5)
		require.True(t, leader.Valid())
		require.NoError(t, leader.Unlock())
		next := v.granted(waiting[0]) // it knew that it was next
		refuses(t, v.failed(waiting[1]), electionPath, latchNode)
		refuses(t, v.failed(waiting[2]), electionPath, latchNode)
		require.True(t, next.Valid())
		require.NoError(t, next.Unlock())
		v.queued(electionPath, 1)
	})
}

// A lock is none that a latch takes part in.
func TestALockIgnoresALeaderLatch(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		v.put(lockPath+"/"+latchNode, "")
		m := v.mutexes(1)[0]
		require.NoError(t, v.lock(m).Unlock())
		require.True(t, m.TryLock())
		m.Unlock()
	})
}

// semaphoreCalls is every call of a semaphore that takes permits or counts them.
var semaphoreCalls = map[string]func(ctx context.Context, w *zksemaphore.Weighted) error{
	"Acquire": func(ctx context.Context, w *zksemaphore.Weighted) error { return w.Acquire(ctx, 1) },
	"TryAcquire": func(ctx context.Context, w *zksemaphore.Weighted) error {
		_, err := w.TryAcquireLease(ctx, 1)
		return err
	},
	"Available": func(ctx context.Context, w *zksemaphore.Weighted) error { _, err := w.Available(ctx); return err },
	"Resize":    func(ctx context.Context, w *zksemaphore.Weighted) error { return w.Resize(ctx, 2) },
}

// foreignPermits is what the semaphores of others have below their path.
var foreignPermits = map[string][]string{
	"InterProcessSemaphoreV2":                   {"locks", "leases"},
	"InterProcessSemaphoreV2 for a minute":      {"leases"},
	"InterProcessSemaphore":                     {olderNode},
	"Semaphore of kazoo, in somebody's path":    {permitNode},
	"several Semaphores of kazoo on one's path": {permitNode, permitNode[1:] + "f"},
}

func TestASemaphoreRefusesThePathOfAnotherLibrarysSemaphore(t *testing.T) {
	for kind, children := range foreignPermits {
		for name, call := range semaphoreCalls {
			t.Run(kind+" "+name, func(t *testing.T) {
				inProcess(t, func(t *testing.T, v *env) {
					ctx, cancel := context.WithTimeout(context.Background(), v.patience())
					defer cancel()
					for _, child := range children {
						v.put(semPath+"/"+child, "")
					}
					w := v.sems(1, 1)[0]
					refuses(t, call(ctx, w), semPath, children[len(children)-1])
					require.Empty(t, v.data(semPath), "nor are our terms written down")
					for _, child := range children {
						v.remove(semPath + "/" + child)
					}
					require.NoError(t, call(ctx, w))
				})
			})
		}
	}
}

func TestASemaphoreRefusesALaterSemaphoreOfAnotherLibrary(t *testing.T) {
	for kind, children := range foreignPermits {
		t.Run(kind, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				v.put(semQueue, "") // no container, which servers may remove while this test does
				w := v.sems(3, 2)
				held := v.granted(want(context.Background(), w[0], 1))
				for _, child := range children {
					v.put(semPath+"/"+child, "")
				}
				for _, call := range semaphoreCalls {
					refuses(t, call(context.Background(), w[1]), semPath, children[len(children)-1])
				}
				require.True(t, held.Valid())
				require.NoError(t, held.Unlock())
				// Where nobody of ours was for long, the queue has disappeared.
				v.queued(semQueue, 0)
				v.remove(semQueue)
				_, err := w[2].TryAcquireLease(context.Background(), 1)
				refuses(t, err, semPath, children[len(children)-1])
				v.left(semQueue, 0, "refused")
			})
		})
	}
}

// What else somebody keeps there is his business.
func TestASemaphoreMindsNoOtherChildren(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		for _, child := range []string{"README", "locks", "lease", latchNode, permitNode + "f", "queue2"} {
			v.put(semPath+"/"+child, "")
		}
		w := v.sems(1, 1)[0]
		for _, call := range semaphoreCalls {
			if err := call(context.Background(), w); err != nil {
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
			}
		}
	})
}
