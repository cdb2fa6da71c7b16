package faults_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
)

func useMutex(t testing.TB, s *zksync.Session) {
	l, err := lock(&client{s: s}).LockContext(context.Background())
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
}

// level asks for one level more, of a hold that s stands for. Where the hold was lost
// meanwhile the level is one of a new hold, which is entered.
func (k *kin) level(c *client, party string, outer *stake, get func(context.Context) (*zksync.Lease, error)) (*zksync.Lease, *stake) {
	var l *zksync.Lease
	began := time.Now()
	err := k.call(c, party, 0, func(ctx context.Context) (err error) {
		l, err = get(ctx)
		return err
	}, zksync.ErrUpgrade)
	if err != nil {
		return nil, outer
	}
	if l.Token() == outer.token {
		if took := time.Since(began); took > 0 {
			k.wrong("%s: one level more took %v", party, took)
		}
		return l, outer
	}
	if l.Token().Compare(outer.token) < 0 {
		k.wrong("%s: the token of a new hold is older: %v after %v", party, l.Token(), outer.token)
	}
	return l, k.holds(party, lockDir, l)
}

// unnest gives leases back, the latest first, and the hold with the last of them.
func (k *kin) unnest(holds []*stake, leases []*zksync.Lease) {
	for i := len(leases) - 1; i >= 0; i-- {
		l := leases[i]
		if l == nil {
			continue
		}
		last := true
		for j, other := range leases[:i] {
			last = last && (other == nil || holds[j] != holds[i])
		}
		if last {
			k.lets(holds[i], l.Unlock)
		} else if err := l.Unlock(); err != nil && !errors.Is(err, zksync.ErrLost) {
			k.wrong("unlock of a level: %v", err)
		}
	}
}

// locksTwice holds a twice over, by the form of sync.Mutex.
func (k *kin) locksTwice(a *reentrant.Mutex) {
	a.Lock()
	s := k.holds("a", lockDir, a.Lease())
	time.Sleep(20 * ms)
	a.Lock() // of a new hold, if the first was lost
	if l := a.Lease(); l.Token() != s.token {
		k.kmu.Lock()
		s.ended = time.Now()
		k.kmu.Unlock()
		s = k.holds("a again", lockDir, l)
	}
	time.Sleep(20 * ms)
	k.kmu.Lock()
	s.ended = time.Now()
	k.kmu.Unlock()
	a.Unlock()
	a.Unlock()
	if a.HoldCount() != 0 || a.HeldByCurrent() {
		k.wrong("unlocked twice, a still holds")
	}
}

func reentrantPlays() []play {
	return []play{
		{name: "reentrant mutex: two levels by leases, one behind", clients: 2, before: there, queues: onlyLocks, use: useMutex, act: func(k *kin) {
			a, b := reentrant.NewMutex(lock(k.clients[0])), reentrant.NewMutex(lock(k.clients[1]))
			k.do(0, func() { k.nest(k.clients[0], "a", a.LockContext) })
			k.do(10*ms, func() { k.nest(k.clients[1], "b", b.LockContext) })
		}},
		{name: "reentrant mutex: two levels of the mirror form, one behind", clients: 2, before: there, queues: onlyLocks, use: useMutex, act: func(k *kin) {
			a, b := reentrant.NewMutex(lock(k.clients[0])), lock(k.clients[1])
			k.do(0, func() { k.locksTwice(a) })
			k.do(10*ms, func() {
				l, s := k.get(k.clients[1], "b", lockDir, 0, b.LockContext)
				k.during(l, s, 20*ms)
			})
		}},
		{name: "reentrant rwmutex: write, read, downgrade, one writer behind", clients: 3, before: there, queues: onlyLocks, use: useRW, act: func(k *kin) {
			rw := rws(k)
			m := reentrant.NewRWMutex(rw[0])
			k.do(0, func() { k.writeThenRead(m) })
			k.do(10*ms, func() {
				l, s := k.get(k.clients[1], "writer behind", lockDir, 0, rw[1].LockContext)
				k.during(l, s, 20*ms)
			})
			k.do(20*ms, func() {
				l, s := k.get(k.clients[2], "reader behind", lockDir, 0, rw[2].RLockContext)
				k.during(l, s, 20*ms)
			})
		}},
		{name: "reentrant rwmutex: leases, a reader is refused to write", clients: 2, before: there, queues: onlyLocks, use: useRW, act: func(k *kin) {
			a, b := reentrant.NewRWMutex(rws(k)[0]), reentrant.NewRWMutex(rws(k)[1])
			k.do(0, func() { k.nest(k.clients[0], "reads", a.RLockContext) })
			k.do(10*ms, func() { k.nest(k.clients[1], "writes", b.LockContext) })
			k.do(20*ms, func() {
				owner := reentrant.WithOwner(context.Background())
				l, s := k.get(k.clients[0], "reads and would write", lockDir, 0, func(ctx context.Context) (*zksync.Lease, error) {
					return a.RLockContext(same(ctx, owner))
				})
				if l == nil {
					return
				}
				w, ws := k.level(k.clients[0], "would write", s, func(ctx context.Context) (*zksync.Lease, error) {
					return a.LockContext(same(ctx, owner))
				})
				if w != nil && l.Err() == nil {
					k.wrong("a reader got the write lock")
				}
				k.unnest([]*stake{s, ws}, []*zksync.Lease{l, w})
			})
		}},
	}
}

// same is ctx with the owner that another context has.
func same(ctx, owner context.Context) context.Context {
	return ownedBy{ctx, owner}
}

// ownedBy is a context with the values of another one.
type ownedBy struct {
	context.Context
	values context.Context
}

func (o ownedBy) Value(key any) any {
	if v := o.Context.Value(key); v != nil {
		return v
	}
	return o.values.Value(key)
}

// nest holds three levels by leases.
func (k *kin) nest(c *client, party string, get func(context.Context) (*zksync.Lease, error)) {
	owner := reentrant.WithOwner(context.Background())
	owned := func(ctx context.Context) (*zksync.Lease, error) { return get(same(ctx, owner)) }
	l, s := k.get(c, party, lockDir, 0, owned)
	if l == nil {
		return
	}
	time.Sleep(15 * ms)
	l2, s2 := k.level(c, party+", second level", s, owned)
	time.Sleep(15 * ms)
	l3, s3 := k.level(c, party+", third level", s2, owned)
	k.unnest([]*stake{s, s2, s3}, []*zksync.Lease{l, l2, l3})
}

// writeThenRead writes twice, reads inside, and goes on reading when it has given the write
// lock up.
func (k *kin) writeThenRead(m *reentrant.RWMutex) {
	end := func(s *stake) {
		k.kmu.Lock()
		defer k.kmu.Unlock()
		s.ended = time.Now()
	}
	m.Lock()
	w := k.holds("writes", lockDir, m.Lease())
	time.Sleep(10 * ms)
	m.Lock()
	if l := m.Lease(); l.Token() != w.token {
		end(w)
		w = k.holds("writes again", lockDir, l)
	}
	m.RLock()
	if l := m.Lease(); l.Token() != w.token {
		end(w)
		w = k.holds("reads anew", lockDir, l)
	}
	time.Sleep(20 * ms)
	end(w)
	m.Unlock()
	m.Unlock()
	for r := m.Lease(); r != nil && r.Err() == nil && !strings.Contains(r.Node(), "__READ__"); r = m.Lease() {
		time.Sleep(5 * ms) // the servers have not answered yet
	}
	r := m.Lease()
	if r == nil || m.ReadHoldCount() == 0 {
		m.RUnlock() // of what was lost
		return
	}
	reads := k.holds("reads on", lockDir, r)
	time.Sleep(20 * ms)
	end(reads)
	m.RUnlock()
}
