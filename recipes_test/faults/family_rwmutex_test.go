package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func rws(k *kin) (out []*zkrwmutex.RWMutex) {
	for _, c := range k.clients {
		out = append(out, zkrwmutex.New(c.s, lockDir))
	}
	return out
}

// during holds for a while.
func (k *kin) during(l *zksync.Lease, s *stake, d time.Duration) {
	if l == nil {
		return
	}
	time.Sleep(d)
	k.lets(s, l.Unlock)
}

// useRW takes both sides, one after the other, and downgrades.
func useRW(t testing.TB, s *zksync.Session) {
	ctx := context.Background()
	rw := zkrwmutex.New(s, lockDir)
	l, err := rw.LockContext(ctx)
	require.NoError(t, err)
	r, err := rw.Downgrade(ctx, l)
	require.NoError(t, err)
	require.Positive(t, r.Token().Compare(l.Token()))
	require.NoError(t, r.Unlock())
	again, err := rw.TryRLockContext(ctx)
	require.NoError(t, err)
	require.Positive(t, again.Token().Compare(r.Token()))
	require.NoError(t, again.Unlock())
}

func rwPlays() []play {
	scene := func(name string, act func(k *kin)) play {
		return play{name: name, clients: 3, before: there, queues: onlyLocks, use: useRW, act: act}
	}
	return []play{
		scene("rwmutex: writer, reader, writer", func(k *kin) {
			rw := rws(k)
			k.do(0, func() {
				l, s := k.get(k.clients[0], "first writer", lockDir, 0, rw[0].LockContext)
				k.during(l, s, 50*ms)
			})
			k.do(10*ms, func() {
				l, s := k.get(k.clients[1], "reader", lockDir, 0, rw[1].RLockContext)
				k.during(l, s, 30*ms)
			})
			k.do(25*ms, func() {
				l, s := k.get(k.clients[2], "second writer", lockDir, 0, rw[2].LockContext)
				k.during(l, s, 30*ms)
			})
		}),
		scene("rwmutex: two readers share, a third, a writer gives up", func(k *kin) {
			rw := rws(k)
			for i, start := range []time.Duration{0, 1 * ms} {
				k.do(start, func() {
					l, s := k.get(k.clients[0], "reader "+string(rune('a'+i)), lockDir, 0, rw[0].RLockContext)
					k.during(l, s, 60*ms)
				})
			}
			k.do(10*ms, func() {
				l, s := k.get(k.clients[1], "hasty writer", lockDir, 30*ms, rw[1].LockContext)
				k.during(l, s, 30*ms)
			})
			k.do(20*ms, func() {
				l, s := k.get(k.clients[2], "reader behind", lockDir, 0, rw[2].RLockContext)
				k.during(l, s, 30*ms)
			})
		}),
		scene("rwmutex: downgrade before a writer and a reader", func(k *kin) {
			rw := rws(k)
			k.do(0, func() { k.downgrade(k.clients[0], rw[0], 40*ms, 40*ms) })
			k.do(10*ms, func() {
				l, s := k.get(k.clients[1], "writer behind", lockDir, 0, rw[1].LockContext)
				k.during(l, s, 30*ms)
			})
			k.do(20*ms, func() {
				l, s := k.get(k.clients[2], "reader behind", lockDir, 0, rw[2].RLockContext)
				k.during(l, s, 30*ms)
			})
		}),
		scene("rwmutex: try", func(k *kin) {
			rw := rws(k)
			k.do(0, func() {
				l, s := k.get(k.clients[0], "writer", lockDir, 0, rw[0].TryLockContext, zksync.ErrNotAcquired)
				k.during(l, s, 50*ms)
			})
			k.do(15*ms, func() {
				l, s := k.get(k.clients[1], "reader refused", lockDir, 0, rw[1].TryRLockContext, zksync.ErrNotAcquired)
				k.during(l, s, 10*ms)
			})
			k.do(80*ms, func() {
				l, s := k.get(k.clients[2], "reader", lockDir, 0, rw[2].TryRLockContext, zksync.ErrNotAcquired)
				k.during(l, s, 40*ms)
			})
			k.do(100*ms, func() {
				l, s := k.get(k.clients[0], "writer refused", lockDir, 0, rw[0].TryLockContext, zksync.ErrNotAcquired)
				k.during(l, s, 10*ms)
			})
		}),
	}
}

// downgrade writes for a while, and reads for a while without letting go.
func (k *kin) downgrade(c *client, rw *zkrwmutex.RWMutex, writes, reads time.Duration) {
	l, s := k.get(c, "writer", lockDir, 0, rw.LockContext)
	if l == nil {
		return
	}
	time.Sleep(writes)
	k.kmu.Lock()
	s.ended = time.Now() // from here on it believes to read at most
	k.kmu.Unlock()
	r, s := k.get(c, "downgraded", lockDir, 0, func(ctx context.Context) (*zksync.Lease, error) {
		return rw.Downgrade(ctx, l)
	}, zksync.ErrLost)
	if r == nil {
		if l.Err() == nil {
			k.wrong("a downgrade failed and the writer holds on")
			_ = l.Unlock()
		}
		return
	}
	k.during(r, s, reads)
}
