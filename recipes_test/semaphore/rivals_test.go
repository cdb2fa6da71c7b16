package semaphore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

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
	"InterProcessSemaphore":                     {proving.OlderNode},
	"Semaphore of kazoo, in somebody's path":    {proving.PermitNode},
	"several Semaphores of kazoo on one's path": {proving.PermitNode, proving.PermitNode[1:] + "f"},
}

func TestASemaphoreRefusesThePathOfAnotherLibrarysSemaphore(t *testing.T) {
	for kind, children := range foreignPermits {
		for name, call := range semaphoreCalls {
			t.Run(kind+" "+name, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
					defer cancel()
					for _, child := range children {
						v.Put(proving.SemPath+"/"+child, "")
					}
					w := sems(v, 1, 1)[0]
					proving.Refuses(t, call(ctx, w), proving.SemPath, children[len(children)-1])
					require.Empty(t, v.Data(proving.SemPath), "nor are our capacity written down")
					for _, child := range children {
						v.Remove(proving.SemPath + "/" + child)
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
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				v.Put(proving.SemQueue, "") // no container, which servers may remove while this test does
				w := sems(v, 3, 2)
				held := v.Granted(want(context.Background(), w[0], 1))
				for _, child := range children {
					v.Put(proving.SemPath+"/"+child, "")
				}
				for _, call := range semaphoreCalls {
					proving.Refuses(t, call(context.Background(), w[1]), proving.SemPath, children[len(children)-1])
				}
				require.True(t, held.Valid())
				require.NoError(t, held.Unlock())
				// Where nobody of ours was for long, the queue has disappeared.
				v.Queued(proving.SemQueue, 0)
				v.Remove(proving.SemQueue)
				_, err := w[2].TryAcquireLease(context.Background(), 1)
				proving.Refuses(t, err, proving.SemPath, children[len(children)-1])
				v.Left(proving.SemQueue, 0, "refused")
			})
		})
	}
}

// What else somebody keeps there is his business.
func TestASemaphoreMindsNoOtherChildren(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for _, child := range []string{"README", "locks", "lease", proving.PermitNode + "f", "queue2"} {
			v.Put(proving.SemPath+"/"+child, "")
		}
		w := sems(v, 1, 1)[0]
		for _, call := range semaphoreCalls {
			if err := call(context.Background(), w); err != nil {
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
			}
		}
	})
}
