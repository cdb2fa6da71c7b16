package faults_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// site is where every errand works.
const site = "/site"

// errands are one for each option of a lock and for each type. The table of docs/guarantees/faults.md has them as its rows.
func errands() []errand {
	return slices.Concat(optionErrands(), lockErrands(), meetingErrands(), valueErrands(), workErrands())
}

// optionErrands are what a mutex can do besides locking.
func optionErrands() []errand {
	return []errand{
		{name: "WithHandover", run: contend(zksync.WithHandover(2)), after: lockIsFree, least: 8},
		{name: "WithLinger", run: contend(zksync.WithLinger(40 * ms)), after: lockIsFree, least: 6},
		{name: "WithAsyncUnlock", run: contend(zksync.WithAsyncUnlock()), after: lockIsFree, least: 8},
		{name: "WithMaxHold", run: contend(zksync.WithMaxHold(6 * ms)), after: lockIsFree, least: 8},
		{name: "WithLockDelay", run: contend(zksync.WithLockDelay(2 * time.Second)), after: func(r *round) {
			takesLock(r, zksync.WithLockDelay(2*time.Second))
		}, least: 8},
		{name: "Revoked", run: revoke, after: lockIsFree, least: 8},
	}
}

// contend has two goroutines of one process, on one object, and another process lock in turn.
func contend(opts ...zksync.Option) func(r *round) {
	return func(r *round) {
		m, n := zksync.NewMutex(r.a.s, site, opts...), zksync.NewMutex(r.b.s, site, opts...)
		rounds := func(h *hand, m *zksync.Mutex) func() {
			return func() {
				for range 2 {
					h.holds("lock", 1, 10*ms, m.LockContext)
				}
			}
		}
		r.party(0, rounds(r.a, m))
		r.party(3*ms, rounds(r.a, m))
		r.party(5*ms, rounds(r.b, n))
	}
}

func lockIsFree(r *round) { takesLock(r) }

// takesLock has a client that comes now lock: only an entry of a session that was given up may be ahead of it.
func takesLock(r *round, opts ...zksync.Option) {
	r.last.holds("the next lock", 1, ms, zksync.NewMutex(r.last.s, site, opts...).LockContext)
}

// revoke has a holder that listens be asked by another process, which then locks.
func revoke(r *round) {
	locked := make(chan struct{})
	r.party(0, func() {
		var l *zksync.Lease
		err := r.a.does("lock", func(ctx context.Context) (err error) {
			l, err = zksync.NewMutex(r.a.s, site).LockContext(ctx)
			return err
		})
		close(locked)
		if err != nil {
			return
		}
		r.enters(l, 1)
		_ = r.a.does("to be asked", func(ctx context.Context) error {
			select {
			case <-l.Revoked():
			case <-l.Done():
			case <-ctx.Done():
				return ctx.Err()
			}
			return nil
		})
		r.leaves(l)
		_ = r.a.does("unlock", func(context.Context) error { return l.Unlock() }, zksync.ErrLost)
	})
	r.party(0, func() {
		<-locked
		for range 4 {
			var all []zksync.Contender
			r.b.until("Contenders", func(ctx context.Context) (err error) {
				all, err = zksync.Contenders(ctx, r.b.s, site)
				return err
			})
			if len(all) == 0 {
				break
			}
			err := r.b.does("Revoke", func(ctx context.Context) error { return zksync.Revoke(ctx, r.b.s, all[0]) }, zksync.ErrStale)
			if err == nil || errors.Is(err, zksync.ErrStale) {
				break
			}
		}
		r.b.holds("lock after that", 1, ms, zksync.NewMutex(r.b.s, site).LockContext)
	})
}
