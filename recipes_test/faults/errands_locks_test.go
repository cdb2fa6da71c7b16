package faults_test

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// lockErrands are the types that somebody holds.
func lockErrands() []errand {
	return []errand{
		{name: "zksync.Mutex", run: contend(), after: lockIsFree, least: 8},
		{name: "zksync.MultiLock", least: 8, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				m := zksync.MultiLock(zksync.NewMutex(h.s, site+"/1"), zksync.NewMutex(h.s, site+"/2"))
				r.party(time.Duration(i)*3*ms, func() {
					var ls zksync.Leases
					if h.does("lock", func(ctx context.Context) (err error) { ls, err = m.LockContext(ctx); return err }) != nil {
						return
					}
					r.enters(ls[0], 1)
					time.Sleep(10 * ms)
					r.leaves(ls[0])
					_ = h.does("unlock", func(context.Context) error { return ls.Unlock() }, zksync.ErrLost)
				})
			}
		}},
		{name: "zkrwmutex.RWMutex", least: 8, run: func(r *round) {
			a, b := zkrwmutex.New(r.a.s, site), zkrwmutex.New(r.b.s, site)
			r.party(0, func() { r.a.holds("write", 1, 10*ms, a.LockContext) })
			r.party(3*ms, func() { r.b.holds("write", 1, 10*ms, b.LockContext) })
			r.party(5*ms, func() { r.a.reads(a) })
			r.party(6*ms, func() { r.b.reads(b) })
		}},
		{name: "reentrant.Mutex", least: 4, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				m := reentrant.NewMutex(zksync.NewMutex(h.s, site))
				r.party(time.Duration(i)*3*ms, func() {
					_ = h.does("nested", func(ctx context.Context) error {
						return m.Do(ctx, func(ctx context.Context, l *zksync.Lease) error {
							return m.Do(ctx, func(context.Context, *zksync.Lease) error {
								r.enters(l, 1)
								defer r.leaves(l)
								time.Sleep(10 * ms)
								return nil
							})
						})
					})
				})
			}
		}, after: lockIsFree},
		{name: "zksemaphore.Weighted", least: 6, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b, r.a} {
				w := zksemaphore.NewWeighted(h.s, site, 2)
				r.party(time.Duration(i)*3*ms, func() {
					h.holds("permit", 2, 15*ms, func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 1) })
				})
			}
		}},
		{name: "zkelection.Election", least: 6, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				e := zkelection.New(h.s, site, zkelection.Candidate{ID: "candidate"})
				r.party(time.Duration(i)*3*ms, func() {
					h.holds("campaign", 1, 10*ms, e.Campaign)
					_ = h.does("leader", func(ctx context.Context) error { _, err := e.Leader(ctx); return err }, zksync.ErrNoLeader)
				})
			}
		}},
		{name: "zkcond.Cond", least: 10, run: condition},
		{name: "zkonce.Once", least: 6, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				o := zkonce.New(h.s, site)
				r.party(time.Duration(i)*3*ms, func() {
					h.until("DoContext", func(ctx context.Context) error {
						_, err := o.DoContext(ctx, func(context.Context) ([]byte, error) { time.Sleep(10 * ms); return []byte("x"), nil })
						return err
					})
				})
			}
		}, after: func(r *round) {
			r.last.until("Done", func(ctx context.Context) error {
				done, err := zkonce.New(r.last.s, site).IsDone(ctx)
				if err == nil && !done {
					r.wrong("no result is kept")
				}
				return err
			})
		}},
		{name: "zkonce.Promise", least: 4, run: func(r *round) {
			a, b := zkonce.NewPromise[int](r.a.s, site), zkonce.NewPromise[int](r.b.s, site)
			r.party(5*ms, func() {
				r.a.until("Complete", func(ctx context.Context) error { _, err := a.Complete(ctx, 7); return err })
			})
			r.party(0, func() {
				r.b.until("Wait", func(ctx context.Context) error {
					v, err := b.Wait(ctx)
					if err == nil && v != 7 {
						r.wrong("the promise is %d", v)
					}
					return err
				})
			})
		}},
		{name: "zkflight.Flight", least: 4, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				f := zkflight.New[int](h.s, site)
				r.party(time.Duration(i)*3*ms, func() {
					h.until("Do", func(ctx context.Context) error {
						v, err, _ := f.Do(ctx, "k", func(context.Context) (int, error) { time.Sleep(10 * ms); return 7, nil })
						if err == nil && v != 7 {
							r.wrong("the flight brought %d", v)
						}
						return err
					})
				})
			}
		}},
		{name: "zkdurable.Mutex", least: 10, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				m, owner := zkdurable.NewMutex(h.s, site), []string{"a", "b"}[i]
				r.party(time.Duration(i)*3*ms, func() { h.keeps(m, owner) })
			}
		}, after: func(r *round) { r.last.keeps(zkdurable.NewMutex(r.last.s, site), "last") }},
	}
}

func (h *hand) reads(rw *zkrwmutex.RWMutex) {
	h.holds("read", 2, 10*ms, rw.RLockContext)
}

// condition has one client wait for what the other one signals.
func condition(r *round) {
	m, n := zksync.NewMutex(r.a.s, site+"/lock"), zksync.NewMutex(r.b.s, site+"/lock")
	waits, signals := zkcond.New(m, site+"/cond"), zkcond.New(n, site+"/cond")
	ready := false
	r.party(0, func() {
		for !r.over() {
			var l *zksync.Lease
			if r.a.does("lock", func(ctx context.Context) (err error) { l, err = m.LockContext(ctx); return err }) != nil {
				continue
			}
			r.mu.Lock()
			is := ready
			r.mu.Unlock()
			if !is {
				var after *zksync.Lease
				_ = r.a.does("wait", func(ctx context.Context) (err error) { after, err = waits.WaitContext(ctx, l); return err }, zksync.ErrLost)
				l = after
			}
			if l != nil {
				_ = r.a.does("unlock", func(context.Context) error { return l.Unlock() }, zksync.ErrLost)
			}
			if is {
				return
			}
		}
	})
	r.party(50*ms, func() {
		for !r.over() {
			var l *zksync.Lease
			if r.b.does("lock", func(ctx context.Context) (err error) { l, err = n.LockContext(ctx); return err }) != nil {
				continue
			}
			r.mu.Lock()
			ready = true
			r.mu.Unlock()
			err := r.b.does("signal", func(ctx context.Context) error { return signals.SignalContext(ctx, l) }, zksync.ErrLost)
			_ = r.b.does("unlock", func(context.Context) error { return l.Unlock() }, zksync.ErrLost)
			if err == nil {
				return
			}
		}
	})
}

// keeps locks for an owner until that has succeeded, and unlocks.
func (h *hand) keeps(m *zkdurable.Mutex, owner string) {
	var hold *zkdurable.Hold
	h.until("lock for "+owner, func(ctx context.Context) (err error) {
		hold, err = m.Lock(ctx, owner)
		if errors.Is(err, zksync.ErrMisuse) { // a try before this one was granted after all
			hold, err = m.Resume(ctx, owner)
		}
		return err
	}, zksync.ErrNotAcquired) // it is just being given back
	if hold == nil {
		return
	}
	time.Sleep(10 * ms)
	tried := false
	h.until("unlock for "+owner, func(ctx context.Context) error {
		err := hold.Unlock(ctx)
		if errors.Is(err, zksync.ErrReleased) || tried && errors.Is(err, zksync.ErrLost) {
			return nil // by the call before, perhaps
		}
		tried = true
		return err
	})
}
