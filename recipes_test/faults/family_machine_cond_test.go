package faults_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

const condDir = "/conds/a"

// stock is what is waited for. Only who holds the lock touches it.
type stock struct {
	mu    sync.Mutex
	items int
	made  int
	taken int
}

// take takes one item if there is one and the lease can be proved to be held.
func (s *stock) take(l *zksync.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == 0 || !l.Valid() {
		return false
	}
	s.items--
	s.taken++
	return true
}

func (s *stock) put(l *zksync.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.Valid() {
		return false
	}
	s.items++
	s.made++
	return true
}

func (s *stock) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items
}

// market is a lock and its condition, as a client sees them.
type market struct {
	k *kin
	*stock
	m *zksync.Mutex
	c *zkcond.Cond
}

var elsewhere = []error{zksync.ErrLost, zksync.ErrReleased, zksync.ErrNotAcquired}

// buys waits for an item, as long as wait each time, and takes it.
func (m *market) buys(a *actor, wait time.Duration) {
	for {
		l, s := m.k.get(a.c, a.name, lockDir, time.Hour, m.m.LockContext)
		if l == nil {
			return
		}
		for l != nil {
			if m.take(l) {
				m.k.lets(s, l.Unlock)
				return
			}
			m.k.kmu.Lock()
			s.ended = time.Now()
			m.k.kmu.Unlock()
			var again *zksync.Lease
			err := m.k.call(a.c, a.name, wait, func(ctx context.Context) (err error) {
				again, err = m.c.WaitContext(ctx, l)
				if again != nil && (err == nil || again.Token() != l.Token()) { // else it was not given up
					s = m.k.holds(a.name, lockDir, again)
				}
				return err
			}, elsewhere...)
			switch {
			case again != nil && again.Err() == nil && again.Token().Compare(l.Token()) < 0:
				m.k.wrong("%s waited under %v and got %v", a.name, l.Token(), again.Token())
			case err == nil && again == nil:
				m.k.wrong("%s has neither lease nor error", a.name)
			case err != nil && again != nil: // in vain: the signal, if there was one, is somebody else's
				m.k.lets(s, again.Unlock)
				return
			case err != nil && !errors.Is(err, zksync.ErrLost):
				return
			}
			l = again // nil if the lease was lost before: begin again
		}
	}
}

// sells puts an item there, and signals until that has been done.
func (m *market) sells(a *actor, all bool) {
	for put := false; ; {
		l, s := m.k.get(a.c, a.name, lockDir, time.Hour, m.m.LockContext)
		if l == nil {
			if put {
				continue // cancelled: somebody would wait for ever
			}
			return
		}
		put = put || m.put(l)
		err := m.k.call(a.c, a.name, time.Hour, func(ctx context.Context) error {
			if all {
				return m.c.BroadcastContext(ctx, l)
			}
			return m.c.SignalContext(ctx, l)
		}, zksync.ErrLost)
		m.k.lets(s, l.Unlock)
		if err == nil && put {
			return
		}
	}
}

// No signal is lost, whoever ends in whatever way: when all is calm, nobody waits for what is there.
func TestRandomUseAndFaultsOfTheConditionLoseNoSignal(t *testing.T) {
	inStorm(t, sort{queues: map[string]string{lockDir: ""}, use: useCond, before: there, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		st := &stock{}
		var markets []*market
		for i, c := range m.k.clients {
			mu := zksync.NewMutex(c.s, lockDir)
			markets = append(markets, &market{m.k, st, mu, zkcond.New(mu, condDir)})
			m.actor(i, i)
			m.actor(i, i)
			m.actor(i, 3+i) // who only sells
		}
		buyer := func(a *actor) bool { return a.object < 3 }
		of := func(a *actor) *market { return markets[a.object%3] }
		moves := map[string]func(*rapid.T){
			"buy": func(t *rapid.T) {
				a := m.pick(t, buyer)
				wait := patience(t)
				a.has("buy", func() { of(a).buys(a, wait) })
			},
			"sell": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return !buyer(a) })
				all := rapid.IntRange(0, 3).Draw(t, "all") == 0
				a.has("sell", func() { of(a).sells(a, all) })
			},
		}
		waiting := func() (n int) {
			for _, a := range m.actors {
				if a.does() == "buy" {
					n++
				}
			}
			return n
		}
		calm := func() {
			require.True(m.k.t, waiting() == 0 || st.left() == 0, "%d wait, and %d items are there\n%s\n%s",
				waiting(), st.left(), m.k.srv.Tree(), lazily(m.k.tale))
		}
		home := func(a *actor) func() {
			if !buyer(a) && waiting() > st.left() {
				return func() { of(a).sells(a, false) }
			}
			return nil
		}
		return moves, calm, home
	}})
}

func useCond(t testing.TB, s *zksync.Session) {
	ctx := context.Background()
	left, _, err := s.Conn().Children(condDir)
	require.True(t, err == nil && len(left) == 0 || err != nil, "%v %v", left, err)
	m := zksync.NewMutex(s, lockDir)
	c := zkcond.New(m, condDir)
	woken := make(chan struct{})
	m.Lock()
	go func() {
		defer close(woken)
		m.Lock()
		c.Signal()
		m.Unlock()
	}()
	c.Wait()
	m.Unlock()
	<-woken
	l, err := m.LockContext(ctx)
	require.NoError(t, err)
	require.NoError(t, c.BroadcastContext(ctx, l))
	require.NoError(t, l.Unlock())
}
