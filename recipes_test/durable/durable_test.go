package durable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	path = "/durable/import"
	base = path + "/zkdurable"
)

var ctx = context.Background()

// mutexes opens n sessions and names the same lock through each.
func mutexes(v *proving.Env, n int) []*zkdurable.Mutex {
	v.T.Helper()
	ms := make([]*zkdurable.Mutex, n)
	for i := range ms {
		ms[i] = zkdurable.NewMutex(v.Session(), path, zksync.WithName(fmt.Sprintf("process %d", i)))
	}
	return ms
}

// locks takes the lock, which is free.
func locks(v *proving.Env, m *zkdurable.Mutex, owner string) *zkdurable.Hold {
	v.T.Helper()
	limited, cancel := context.WithTimeout(ctx, v.Patience())
	defer cancel()
	h, err := m.Lock(limited, owner)
	require.NoError(v.T, err)
	return h
}

// attempt is a LockContext in a goroutine of its own.
type attempt struct {
	*proving.Attempt
	hold *zkdurable.Hold
}

func begins(ctx context.Context, m *zkdurable.Mutex, owner string) *attempt {
	a := &attempt{}
	a.Attempt = proving.Waits(ctx, func(ctx context.Context) (err error) {
		a.hold, err = m.Lock(ctx, owner)
		return err
	})
	return a
}

// queued begins to wait behind n others.
func queued(v *proving.Env, m *zkdurable.Mutex, owner string, n int) *attempt {
	v.T.Helper()
	a := begins(ctx, m, owner)
	v.Queued(base+"/queue", n+1)
	v.Quiet()
	return a
}

// granted waits for the hold of an attempt.
func granted(v *proving.Env, a *attempt) *zkdurable.Hold {
	v.T.Helper()
	v.Passes(a.Attempt)
	return a.hold
}

func holder(v *proving.Env, m *zkdurable.Mutex) zkdurable.Holder {
	v.T.Helper()
	v.Flush()
	x, err := m.Holder(ctx)
	require.NoError(v.T, err)
	return x
}

func TestAcceptance156AHoldOutlivesItsProcessUntilItIsResumedOrBroken(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 3)
		dying := v.Session()
		first := locks(v, zkdurable.NewMutex(dying, path), "invoices")
		require.NoError(t, first.SetNote(ctx, "page 7"))
		token := first.Token()
		waiter := queued(v, ms[0], "reports", 0)
		require.NoError(t, dying.Close())
		require.ErrorIs(t, first.Unlock(ctx), zksync.ErrClosed)

		time.Sleep(v.Span(time.Hour, 2*time.Second))
		require.True(t, waiter.Pending(), "nobody is granted")
		x := holder(v, ms[1])
		require.WithinDuration(t, time.Now(), x.Since, v.Span(61*time.Minute, time.Minute))
		x.Since = time.Time{}
		require.Equal(t, zkdurable.Holder{Owner: "invoices", Token: token, Note: "page 7"}, x)

		resumed, err := ms[1].Resume(ctx, "invoices")
		require.NoError(t, err)
		require.Equal(t, token, resumed.Token())
		require.Equal(t, "invoices", resumed.Owner())
		require.True(t, holder(v, ms[2]).Alive)
		require.True(t, waiter.Pending())

		require.NoError(t, ms[2].Break(ctx, token, "the import is beyond repair"))
		v.Awaits(resumed.Done(), "Done")
		err = resumed.Unlock(ctx)
		require.ErrorIs(t, err, zksync.ErrLost)
		require.ErrorContains(t, err, "broken by process 2: the import is beyond repair")
		by, why := resumed.Broken()
		require.Equal(t, []string{"process 2", "the import is beyond repair"}, []string{by, why})

		next := granted(v, waiter)
		require.Positive(t, next.Token().Compare(token))
		by, why = next.Broken()
		require.Equal(t, []string{"process 2", "the import is beyond repair"}, []string{by, why}, "the next holder is told")
		require.NoError(t, next.Unlock(ctx))
		last := locks(v, ms[1], "invoices")
		by, why = last.Broken()
		require.Empty(t, by+why, "the hold before was not broken")
	})
}

func TestAcceptance156OnlyOneProcessHasAHoldOpen(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 3)
		_, err := ms[0].Resume(ctx, "a")
		require.ErrorIs(t, err, zksync.ErrNotAcquired, "nobody has used the path")
		dying := v.Session()
		h := locks(v, zkdurable.NewMutex(dying, path), "a")
		for _, m := range append(ms, zkdurable.NewMutex(dying, path)) {
			_, err = m.Resume(ctx, "a")
			require.ErrorIs(t, err, zksync.ErrNotAcquired, "its process lives")
			_, err = m.Resume(ctx, "b")
			require.ErrorIs(t, err, zksync.ErrNotAcquired, "b holds nothing")
		}
		require.NoError(t, dying.Close())
		v.Awaits(h.Done(), "Done")
		require.ErrorIs(t, h.Err(), zksync.ErrClosed)

		opened := make(chan *zkdurable.Hold, len(ms))
		for _, m := range ms {
			go func() {
				h, err := m.Resume(ctx, "a")
				if err != nil {
					require.ErrorIs(t, err, zksync.ErrNotAcquired)
				}
				opened <- h
			}()
		}
		won := 0
		for range ms {
			if h := <-opened; h != nil {
				won++
			}
		}
		require.Equal(t, 1, won)
	})
}

func TestADurableLockIsGrantedInTheOrderOfTheQueue(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 4)
		h := locks(v, ms[0], "0")
		var as []*attempt
		for i, m := range ms[1:] {
			as = append(as, queued(v, m, fmt.Sprint(i+1), i))
		}
		_, err := ms[0].TryLock(ctx, "other")
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		for i, a := range as {
			require.True(t, a.Pending())
			before := h.Token()
			require.NoError(t, h.Unlock(ctx))
			require.True(t, proving.IsClosed(h.Done()))
			require.ErrorIs(t, h.Err(), zksync.ErrReleased)
			require.ErrorIs(t, h.Unlock(ctx), zksync.ErrReleased)
			h = granted(v, a)
			require.Positive(t, h.Token().Compare(before))
			require.Equal(t, fmt.Sprint(i+1), holder(v, ms[0]).Owner)
			require.False(t, proving.IsClosed(h.Done()))
		}
		require.NoError(t, h.Unlock(ctx))
		require.Equal(t, zkdurable.Holder{}, holder(v, ms[0]))
		h, err = ms[2].TryLock(ctx, "other")
		require.NoError(t, err)
		require.NoError(t, h.Unlock(ctx))
		v.NothingLeft(base, "queue", "writers")
		v.NothingLeft(base + "/queue")
	})
}

func TestTheOwnerOfADurableLockResumesIt(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 3)
		h := locks(v, ms[0], "b")
		first, second := queued(v, ms[1], "a", 0), queued(v, ms[2], "a", 1)
		require.NoError(t, h.Unlock(ctx))
		h = granted(v, first)
		require.ErrorIs(t, v.Failed(second.Attempt), zksync.ErrMisuse, "it came when the owner did not hold")
		for _, m := range ms {
			_, err := m.Lock(ctx, "a")
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, "Resume")
			_, err = m.TryLock(ctx, "a")
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
		require.NoError(t, h.Unlock(ctx))
	})
}

func TestADurableLockRefusesMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := mutexes(v, 1)[0]
		for _, owner := range []string{"", strings.Repeat("x", 1<<10+1), "\xff"} {
			_, err := m.Lock(ctx, owner)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			_, err = m.Resume(ctx, owner)
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
		h := locks(v, m, "Zoë \"of\" <accounting>")
		long := strings.Repeat("x", 64<<10+1)
		require.ErrorIs(t, h.SetNote(ctx, long), zksync.ErrMisuse)
		require.ErrorIs(t, m.Break(ctx, h.Token(), long), zksync.ErrMisuse)
		require.ErrorIs(t, m.Break(ctx, zksync.Token{}, ""), zksync.ErrStale)
		require.NoError(t, h.SetNote(ctx, long[1:]))
		x := holder(v, m)
		require.Equal(t, "Zoë \"of\" <accounting>", x.Owner)
		require.Equal(t, long[1:], x.Note)
		for _, bad := range []*zkdurable.Mutex{
			zkdurable.NewMutex(nil, path), zkdurable.NewMutex(v.Session(), "durable"), zkdurable.NewMutex(v.Session(), path, zksync.WithLinger(time.Second)),
		} {
			_, err := bad.Holder(ctx)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorIs(t, bad.Break(ctx, h.Token(), ""), zksync.ErrMisuse)
		}
	})
}

func TestBreakEndsTheHoldThatItNamesAndNoOther(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 2)
		require.ErrorIs(t, ms[0].Break(ctx, zksync.Token{Zxid: 1}, ""), zksync.ErrStale, "nobody has used the path")
		h := locks(v, ms[0], "a")
		token := h.Token()
		require.NoError(t, h.Unlock(ctx))
		require.ErrorIs(t, ms[1].Break(ctx, token, ""), zksync.ErrStale, "it has ended")
		h = locks(v, ms[0], "a")
		require.ErrorIs(t, ms[1].Break(ctx, token, ""), zksync.ErrStale, "another lasts")
		require.NoError(t, h.SetNote(ctx, "unharmed"))
		require.NoError(t, ms[1].Break(ctx, h.Token(), ""))
		v.Awaits(h.Done(), "Done")
		require.ErrorIs(t, h.SetNote(ctx, "too late"), zksync.ErrLost)
		require.ErrorIs(t, ms[1].Break(ctx, h.Token(), ""), zksync.ErrStale, "again")
		v.NothingLeft(base, "queue", "writers")
	})
}

// A process that breaks a hold and has no name is shown by its id.
func TestWhoBreaksAHoldIsAlwaysTold(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zkdurable.NewMutex(v.Session(), path)
		h := locks(v, m, "a")
		require.NoError(t, m.Break(ctx, h.Token(), ""))
		v.Awaits(h.Done(), "Done")
		by, _ := h.Broken()
		require.Contains(t, by, "process ")
	})
}

func TestACancelledWaitForADurableLockLeavesNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 3)
		h := locks(v, ms[0], "a")
		limited, cancel := context.WithCancel(ctx)
		w := begins(limited, ms[1], "b")
		v.Queued(base+"/queue", 1)
		next := queued(v, ms[2], "c", 1)
		cancel()
		err := v.Failed(w.Attempt)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, zksync.Ambiguous(err))
		v.Queued(base+"/queue", 1)
		require.True(t, next.Pending())
		require.NoError(t, h.Unlock(ctx))
		require.NoError(t, granted(v, next).Unlock(ctx))
		v.NothingLeft(base, "queue", "writers")
	})
}
