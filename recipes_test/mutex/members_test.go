package mutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// tenures is what was granted and when it ended, as the holders know it.
type tenures struct {
	mu   sync.Mutex
	held []*tenure
}

type tenure struct {
	lease       *zksync.Lease
	shares      int64     // 0 for all of it
	begin, over time.Time // over is zero while it lasts
}

// take records a lease. Nobody else's may be valid at that instant, and its token must be the greatest so far.
func (b *tenures) take(t testing.TB, l *zksync.Lease) *tenure {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &tenure{lease: l, begin: time.Now()}
	if l.Valid() { // or it has been lost since, and says so
		for _, o := range b.held {
			require.False(t, o.lease.Valid(), "granted %v while %v is valid", l.Token(), o.lease.Token())
			require.Positive(t, l.Token().Compare(o.lease.Token()), "tokens must grow")
		}
	}
	b.held = append(b.held, x)
	return x
}

// share records a lease of n of so many shares, or of any number of them if limit is 0. No more may be valid at that instant, and
// nobody may have all.
func (b *tenures) share(t testing.TB, l *zksync.Lease, n, limit int64) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := n
	for _, o := range b.held {
		if o.lease.Valid() && l.Valid() {
			require.NotZero(t, o.shares, "granted %v while %v is valid", l.Token(), o.lease.Token())
			sum += o.shares
		}
	}
	require.True(t, limit == 0 || sum <= limit, "%d of %d held when %v was granted", sum, limit, l.Token())
	b.held = append(b.held, &tenure{lease: l, shares: n, begin: time.Now()})
}

// watch notes when a lease ends.
func (b *tenures) watch(x *tenure) {
	go func() {
		<-x.lease.Done()
		b.mu.Lock()
		defer b.mu.Unlock()
		x.over = time.Now()
	}()
}

func (b *tenures) times(i int) (begin, over time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i >= len(b.held) {
		return time.Time{}, time.Time{}
	}
	return b.held[i].begin, b.held[i].over
}

// hold locks in the background and keeps what it gets.
func (b *tenures) hold(t testing.TB, s *zksync.Session) {
	go func() {
		l, err := zksync.NewMutex(s, proving.LockPath).LockContext(context.Background())
		if err == nil {
			b.watch(b.take(t, l))
		}
	}()
}

func (b *tenures) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held)
}
