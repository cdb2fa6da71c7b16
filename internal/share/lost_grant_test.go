package share

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// losing is a ticket of q whose loss has begun: nobody has been told yet.
func losing(q *queue.Queue) *queue.Ticket {
	p := &queue.Ticket{Epoch: &zkconn.Epoch{}}
	p.Retire()
	return p
}

// got is a way to get p.
func got(p *queue.Ticket) getting {
	return func(context.Context, func(*queue.Ticket)) (*queue.Ticket, error) { return p, nil }
}

// The first thing that a loss does is to mark the ticket. Whoever is granted that ticket
// afterwards may be overlooked by what the loss does next, which looks for the holder once.
func TestNothingIsGrantedOnATicketWhoseLossIsOnItsWay(t *testing.T) {
	ask := func(f func(context.Context, bool) (*lease.Lease, error)) (*lease.Lease, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return f(ctx, false)
	}
	mutex := func() *Cohort {
		return NewCohort(session.NewAccess[session.Option]("zksync", session.None(), "/a", nil), queue.KindLock)
	}
	for name, granted := range map[string]func() (*lease.Lease, error){
		"try": func() (*lease.Lease, error) {
			c := mutex()
			c.state, c.grant = lingering, &grant{c: c, ticket: losing(c.side.q), timer: time.NewTimer(time.Hour)}
			return ask(c.Try)
		},
		"acquire": func() (*lease.Lease, error) {
			c := mutex()
			c.state, c.grant = lingering, &grant{c: c, ticket: losing(c.side.q), timer: time.NewTimer(time.Hour)}
			return ask(c.Acquire)
		},
		"readers": func() (*lease.Lease, error) {
			r := NewReaders(mutex())
			r.current = &batch{state: held, ticket: losing(r.q), until: time.Now().Add(time.Hour)}
			return ask(r.Acquire)
		},
		"a reader's try": func() (*lease.Lease, error) {
			r := NewReaders(mutex())
			r.current = &batch{state: held, ticket: losing(r.q), until: time.Now().Add(time.Hour)}
			return ask(r.Try)
		},
		"a try that has just got it": func() (*lease.Lease, error) {
			c := mutex()
			c.state = acquiring
			return c.lookOnce(context.Background(), lease.New(context.Background(), c, c.side.at, false), got(losing(c.side.q)))
		},
		"readers who have just got it": func() (*lease.Lease, error) {
			r := NewReaders(mutex())
			return ask(func(ctx context.Context, dropIn bool) (*lease.Lease, error) {
				w := newWaiter(ctx, lease.New(ctx, r, r.at, dropIn))
				b := &batch{of: r, state: acquiring}
				b.waiters.add(w)
				r.current = b
				r.acquisitionEnded(b, b.acquisition, losing(r.q), nil)
				return w.wait(func(w *waiter) *acquisition { return r.withdraw(b, w) })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := granted()
				require.Nil(t, l, "a lease of a ticket that is being lost")
				require.Error(t, err)
			})
		})
	}
}

// Whoever ends a lease tells the holder first, and comes to the cohort a moment later. An Unlock in between finds the ticket
// there: if it left it, nobody would give it up, because it is no longer that of a hold.
func TestAnUnlockBetweenTheEndOfALeaseAndItsReleaseGivesTheTicketUp(t *testing.T) {
	for _, dropIn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, srv := piped(t)
			c := NewCohort(session.NewAccess[session.Option]("zksync", s, "/locks/a", nil), queue.KindLock)
			c.side.dropIns = new(dropIns)
			l, err := c.Acquire(context.Background(), dropIn)
			require.NoError(t, err)
			require.True(t, l.Finish(errs.ErrMaxHold), "as its bound does, which then calls Release")
			require.ErrorIs(t, l.Unlock(), errs.ErrMaxHold)
			c.Release(l, 0)
			time.Sleep(time.Second)
			require.Empty(t, srv.Ephemerals()[s.ID()], "a node that nobody holds")
			next, err := c.Try(context.Background(), dropIn)
			require.NoError(t, err)
			c.Release(l, 0)
			require.Same(t, next, c.Current(), "the end of a lease ended another one")
			require.NoError(t, next.Unlock())
		})
	}
}

// The same where the session lives on, and only the node is gone.
func TestNothingIsGrantedOnANodeWhoseRemovalIsOnItsWay(t *testing.T) {
	for _, try := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := piped(t)
			r := NewReaders(NewCohort(session.NewAccess[session.Option]("zksync", s, "/locks/a", nil), queue.KindWrite))
			l, err := r.Acquire(context.Background(), false)
			require.NoError(t, err)
			l.Ticket().Retire()
			get := map[bool]func(context.Context, bool) (*lease.Lease, error){false: r.Acquire, true: r.Try}[try]
			next, err := get(context.Background(), false)
			require.NoError(t, err)
			require.NotSame(t, l.Ticket(), next.Ticket(), "a lease of a ticket that is being lost")
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, _ := piped(t)
		g := NewUnshared(session.NewAccess[session.Option]("zksync", s, "/permits", nil), "", queue.KindLock)
		l, err := g.Get(context.Background(), false, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
			p, err := g.q.Obtain(ctx, lost)
			p.Retire()
			return p, err
		})
		require.NoError(t, err)
		require.ErrorIs(t, l.Err(), errs.ErrLost, "nobody tells it later")
	})
}

// A loss marks the ticket without the cohort's mutex, so at any point of a Try that takes over from one who lingers.
func TestATryIsGrantedOrRefusedWheneverTheTicketIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := piped(t)
		e, err := s.Client().Epoch(t.Context())
		require.NoError(t, err)
		begin, marked := make(chan *queue.Ticket), make(chan struct{})
		go func() {
			for p := range begin {
				p.Retire()
				marked <- struct{}{}
			}
		}()
		defer close(begin)
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whoever finds the loss at first looks at the servers, and there are none
		for range 3000 {
			c := NewCohort(session.NewAccess[session.Option]("zksync", session.None(), "/a", nil), queue.KindLock)
			p := &queue.Ticket{Epoch: e}
			c.state, c.grant = lingering, &grant{c: c, ticket: p, timer: time.NewTimer(time.Hour)}
			begin <- p
			l, err := c.attempt(ctx, false)
			<-marked
			c.mu.Lock()
			require.Equal(t, err == nil, l != nil)
			require.Zero(t, c.waiters.len, "a Try waits for nobody")
			c.mu.Unlock()
		}
	})
}

// The session ends after the answer to a downgrade, before or while the cohort hears of it.
func TestADowngradeOfALostHoldWithoutLeaseKeepsTheOthersOutUntilItsUnlock(t *testing.T) {
	for name, lose := range map[string]func(Server, *session.Session, *queue.Ticket){
		"before": func(srv Server, s *session.Session, _ *queue.Ticket) { srv.Expire(s.ID()) },
		"while":  func(_ Server, _ *session.Session, p *queue.Ticket) { p.Retire() },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, srv := piped(t)
			c := NewCohort(session.NewAccess[session.Option]("zksync", s, "/locks/a", nil), queue.KindWrite)
			r := NewReaders(c)
			l, err := c.Acquire(t.Context(), true)
			require.NoError(t, err)
			p := l.Ticket()
			p.SetReplacing(true) // as in Downgrade, up to the answer
			read := r.q.Successor(p)
			_, err = p.ReplaceBy(t.Context(), read, nil)
			require.NoError(t, err)
			lose(srv, s, p)
			synctest.Wait()
			_, err = r.takeOver(t.Context(), l, read, l.Token())
			require.ErrorIs(t, err, errs.ErrLost, name)
			require.Same(t, l, c.Current(), name)
			require.Equal(t, runsOn, c.state, name)
			_, err = r.Try(t.Context(), false)
			require.ErrorIs(t, err, errs.ErrNotAcquired, name)
			require.ErrorIs(t, l.Unlock(), errs.ErrLost, name)
			require.Nil(t, c.Current(), name)
		})
	}
}

// A process that stood still has no timer fire: nobody has told the ticket yet that the proof has run out.
func TestALingeringTicketIsNotGrantedAfterItsProofHasRunOut(t *testing.T) {
	for _, try := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, srv := piped(t)
			linger := session.ForLock("a linger", func(s *session.Settings) { s.Linger = time.Hour })
			c := NewCohort(session.NewAccess("zksync", s, "/locks/a", []session.Option{linger}), queue.KindLock)
			l, err := c.Acquire(t.Context(), false)
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
			e := l.Ticket().Epoch
			srv.Expire(s.ID())
			time.Sleep(time.Second)
			require.False(t, e.Valid())
			old := c.side.q.Successor(&queue.Ticket{Epoch: e}) // nobody tells it of the loss
			c.mu.Lock()
			c.state, c.grant = lingering, &grant{c: c, ticket: old, timer: time.NewTimer(time.Hour)}
			c.mu.Unlock()
			get := map[bool]func(context.Context, bool) (*lease.Lease, error){false: c.Acquire, true: c.Try}[try]
			next, err := get(t.Context(), false)
			require.NoError(t, err)
			require.True(t, next.Valid())
			require.NotSame(t, old, next.Ticket())
			require.NoError(t, next.Unlock())
		})
	}
}
