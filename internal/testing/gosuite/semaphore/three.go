//go:build three

package semaphore

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/testing/gosuite/play"
	"github.com/go-menagerie/menagerie/zksemaphore"
)

const sessions = 3

// Weighted releases permits in the session that has acquired them.
type Weighted struct {
	all [sessions]*zksemaphore.Weighted

	mu   sync.Mutex
	held [sessions]int64
}

// NewWeighted gives the semaphore a path.
func NewWeighted(n int64) *Weighted {
	w, path := new(Weighted), play.Path()
	for i := range w.all {
		w.all[i] = zksemaphore.NewWeighted(play.Session(i), path, n)
	}
	return w
}

func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	i := play.Turn(sessions)
	err := w.all[i].Acquire(ctx, n)
	if err == nil {
		w.hold(i, n)
	}
	return err
}

func (w *Weighted) TryAcquire(n int64) bool {
	i := play.Turn(sessions)
	ok := w.all[i].TryAcquire(n)
	if ok {
		w.hold(i, n)
	}
	return ok
}

func (w *Weighted) hold(i int, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[i] += n
}

func (w *Weighted) Release(n int64) {
	for i, part := range w.parts(n) {
		w.all[i].Release(part)
	}
}

// parts divides n among the sessions that hold. What no session holds is for the first one, which panics.
func (w *Weighted) parts(n int64) (parts [sessions]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range parts {
		parts[i] = max(min(n, w.held[i]), 0)
		w.held[i] -= parts[i]
		n -= parts[i]
	}
	parts[0] += n
	return parts
}
