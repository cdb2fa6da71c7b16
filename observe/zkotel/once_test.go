package zkotel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/go-menagerie/menagerie/observe/zkotel"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// settled requires that each span that was started has ended, once, and returns how many there are of each name.
func (p *process) settled(t *testing.T) map[string]int {
	synctest.Wait()
	count := make(map[string]int)
	for _, s := range p.spans.GetSpans() {
		count[s.Name]++
	}
	started := make(map[string]int)
	for _, s := range p.started.Started() {
		started[s.Name()]++
	}
	require.Equal(t, started, count)
	return count
}

func TestALeaseOnAHoldHasNoSpanOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t))
		m := reentrant.NewMutex(zksync.NewMutex(p.Session, "/a"))
		err := m.Do(t.Context(), func(ctx context.Context, _ *zksync.Lease) error {
			return m.Do(ctx, func(context.Context, *zksync.Lease) error { time.Sleep(time.Second); return nil })
		})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"acquire lock": 1, "hold lock": 1}, p.settled(t))
		require.Equal(t, time.Second, took(p.only(t, "hold lock")))
	})
}

func TestALeaseThatTakesThePlaceOfAnotherHasAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t))
		rw := zkrwmutex.New(p.Session, "/rw")
		write, err := rw.LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		read, err := rw.Downgrade(t.Context(), write)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, read.Unlock())
		require.Equal(t, time.Second, took(p.only(t, "hold write")))
		require.Equal(t, 2*time.Second, took(p.only(t, "hold read")))

		sem := zksemaphore.NewWeighted(p.Session, "/sem", 3)
		require.NoError(t, sem.Acquire(t.Context(), 3))
		time.Sleep(time.Second)
		sem.Release(1)
		time.Sleep(3 * time.Second)
		sem.Release(2)
		holds := p.ended(t, 2, "hold permit")
		require.Equal(t, time.Second, took(holds[0]))
		require.Equal(t, 3*time.Second, took(holds[1]))
		p.settled(t)
	})
}

func TestAWaitInsideALockHasTwoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t))
		m := zksync.NewMutex(p.Session, "/a")
		c := zkcond.New(m, "/cond")
		l := lock(t, t.Context(), m)
		time.AfterFunc(5*time.Second, c.Signal)
		l, err := c.WaitContext(t.Context(), l)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		require.Equal(t, 2, p.settled(t)["hold lock"])
	})
}

func TestCloseEndsEachSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p := start(t, srv)
		held := zksync.NewMutex(p.Session, "/a")
		lock(t, t.Context(), held)
		lock(t, t.Context(), zksync.NewMutex(srv.Session(t), "/b"))
		for _, m := range []*zksync.Mutex{held, zksync.NewMutex(p.Session, "/b")} {
			go func() { _, _ = m.LockContext(t.Context()) }()
		}
		time.Sleep(time.Second)
		require.NoError(t, p.Close())
		require.Equal(t, map[string]int{"acquire lock": 3, "hold lock": 1}, p.settled(t))
		require.Equal(t, "released", attributes(p.only(t, "hold lock"))["lock.end"])
	})
}

// driven is a tracer that a test calls itself.
type driven struct {
	*process
	zksync.Tracer
}

func drive(t *testing.T) driven {
	p := start(t, zktest.Run(t))
	return driven{p, zkotel.New(zkotel.WithTracerProvider(p.provider))}
}

func (d driven) begin(t *testing.T) context.Context {
	return d.AcquireStart(t.Context(), zksync.AcquireStartData{Path: "/a", Kind: zksync.KindLock, Position: -1})
}

func (d driven) grant(ctx context.Context, zxid int64) {
	d.AcquireEnd(ctx, zksync.AcquireEndData{Path: "/a", Kind: zksync.KindLock, Token: zksync.Token{Zxid: zxid}})
}

func (d driven) lose(ctx context.Context, zxid int64, held time.Duration, reason string) {
	d.Tracer.(zksync.LossTracer).Lost(ctx, zksync.LossData{
		Path: "/a", Kind: zksync.KindLock, Token: zksync.Token{Zxid: zxid}, Held: held, Reason: reason, Err: zksync.ErrLost,
	})
}

func TestALossOfAHoldThatHasNoSpanYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		ctx := d.begin(t)
		d.grant(ctx, 7)
		time.Sleep(time.Minute)
		d.lose(ctx, 5, time.Second, zksync.ReasonSession)
		time.Sleep(time.Minute)
		d.lose(ctx, 7, 2*time.Minute, zksync.ReasonSession)
		d.settled(t)
		holds := d.ended(t, 2, "hold lock")
		require.Equal(t, []time.Duration{time.Second, 2 * time.Minute}, []time.Duration{took(holds[0]), took(holds[1])})
	})
}

func TestAWaiterLinksToNoHolderThatLeftBeforeItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		first := d.begin(t)
		d.grant(first, 1)
		late, cancel := context.WithCancel(d.begin(t))
		defer cancel()
		time.Sleep(time.Second)
		d.lose(first, 1, time.Second, zksync.ReasonSession)
		time.Sleep(time.Second)
		d.grant(d.begin(t), 2)
		d.grant(late, 3)
		waits := d.ended(t, 3, "acquire lock")
		require.Empty(t, waits[1].Links)
		require.Len(t, waits[2].Links, 1)
	})
}

func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		for _, c := range []struct {
			err     error
			outcome string
			code    codes.Code
		}{
			{zksync.ErrNotAcquired, "not_acquired", codes.Unset},
			{context.Canceled, "canceled", codes.Unset},
			{context.DeadlineExceeded, "canceled", codes.Error},
			{zksync.ErrSessionExpired, "lost", codes.Error},
			{fmt.Errorf("%w: %w", zksync.ErrLost, context.DeadlineExceeded), "lost", codes.Error},
			{fmt.Errorf("%w: %w", zksync.ErrDeadlock, context.Canceled), "error", codes.Error},
			{zk.ErrNoAuth, "error", codes.Error},
		} {
			d.spans.Reset()
			d.AcquireEnd(d.begin(t), zksync.AcquireEndData{Path: "/a", Kind: zksync.KindLock, Position: -1, Err: c.err})
			span := d.only(t, "acquire lock")
			require.Equal(t, c.outcome, attributes(span)["lock.outcome"], c.err)
			require.Equal(t, c.code, span.Status.Code, c.err)
			require.NotContains(t, attributes(span), "lock.position")
		}
		for reason, end := range map[string]string{
			zksync.ReasonSession: "lost", zksync.ReasonRemoved: "lost", zksync.ReasonRevoked: "revoked", zksync.ReasonMaxHold: "max_hold",
		} {
			d.spans.Reset()
			ctx := d.begin(t)
			d.grant(ctx, 1)
			d.lose(ctx, 1, 0, reason)
			require.Equal(t, end, attributes(d.only(t, "hold lock"))["lock.end"])
			require.Equal(t, reason, attributes(d.only(t, "hold lock"))["lock.reason"])
		}
	})
}

func TestAWaiterLinksToAFewOfManyHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t))
		sem := zksemaphore.NewWeighted(p.Session, "/sem", 10)
		for range 10 {
			_, err := sem.AcquireLease(t.Context(), 1)
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := sem.AcquireLease(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, p.ended(t, 11, "acquire permit")[10].Links, 8)
	})
}

func TestTracersDoNotMixTheirSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a, b := start(t, srv), start(t, srv)
		both := zksync.Tracers(zkotel.New(zkotel.WithTracerProvider(a.provider)), zkotel.New(zkotel.WithTracerProvider(b.provider)))
		s := srv.Session(t, zksync.WithTracer(both))
		l := lock(t, t.Context(), zksync.NewMutex(s, "/a"))
		time.Sleep(time.Second)
		require.NoError(t, l.Unlock())
		for _, p := range []*process{a, b} {
			require.Equal(t, map[string]int{"acquire lock": 1, "hold lock": 1}, p.settled(t))
			require.Equal(t, time.Second, took(p.only(t, "hold lock")))
		}
	})
}

// TestEverySpanEndsOnce has goroutines that lock and leave at random, while sessions end and nodes vanish.
func TestEverySpanEndsOnce(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			grants := 0
			var all []*process
			var work sync.WaitGroup
			var mu sync.Mutex
			for i := range 2 {
				p := start(t, srv, zkotel.WithPropagation())
				all = append(all, p)
				for j := range 4 {
					rnd := rand.New(rand.NewPCG(seed, uint64(10*i+j)))
					work.Go(func() {
						n := play(t, srv, p, rnd)
						mu.Lock()
						defer mu.Unlock()
						grants += n
					})
				}
			}
			work.Wait()
			time.Sleep(time.Minute) // losses are reported
			acquired, held := 0, 0
			for _, p := range all {
				require.NoError(t, p.Close())
				for name, n := range p.settled(t) {
					if name == "hold lock" || name == "hold permit" {
						held += n
					} else {
						acquired += n
					}
				}
				require.Zero(t, zkotel.Locks(p.tracer))
			}
			require.Equal(t, 2*4*rounds, acquired)
			require.Equal(t, grants, held)
			require.Greater(t, grants, rounds)
		})
	}
}

const rounds = 30

// play is what a goroutine does. It returns how many locks it got.
func play(t *testing.T, srv *zktest.Server, p *process, rnd *rand.Rand) (grants int) {
	m, sem := zksync.NewMutex(p.Session, "/a", zksync.WithMaxHold(40*time.Millisecond)), zksemaphore.NewWeighted(p.Session, "/sem", 3)
	some := func(n int) time.Duration { return time.Duration(rnd.IntN(n)) * time.Millisecond }
	for range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), some(200))
		var l *zksync.Lease
		var err error
		switch rnd.IntN(4) {
		case 0:
			l, err = m.TryLockContext(ctx)
		case 1:
			l, err = sem.AcquireLease(ctx, 1+rnd.Int64N(3))
		default:
			l, err = m.LockContext(ctx)
		}
		cancel()
		if err != nil {
			continue
		}
		grants++
		time.Sleep(some(60))
		switch rnd.IntN(10) {
		case 0:
			srv.Expire(p.ID())
		case 1:
			_, _ = l.Guard(t.Context(), &zk.DeleteRequest{Path: l.Node(), Version: -1})
		}
		_ = l.Unlock()
	}
	return grants
}
