package porting

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// invoices numbers invoices.
type invoices struct {
	last *zkatomic.Int64 // zkatomic.NewInt64(session, "/invoices/last")
}

func (i *invoices) next(ctx context.Context) (int64, error) { return i.last.Add(ctx, 1) }

func TestTheInvoicesOfAllProcessesHaveDifferentNumbers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		seen := make(map[int64]bool)
		for range 3 {
			i := &invoices{zkatomic.NewInt64(v.Session(), "/invoices/last")}
			for range 5 {
				n, err := i.next(t.Context())
				require.NoError(t, err)
				require.False(t, seen[n])
				seen[n] = true
			}
		}
		require.True(t, seen[15])
	})
}

// registry has the services by their names.
type registry struct {
	services *zkmap.Map[string, string] // zkmap.New[string, string](session, "/services")
}

// claim registers a service, unless the name is taken. It returns the address under the name.
func (r *registry) claim(ctx context.Context, name, address string) (string, error) {
	actual, _, err := r.services.LoadOrStore(ctx, name, address)
	return actual, err
}

var errUnknown = errors.New("no such service")

func (r *registry) find(ctx context.Context, name string) (string, error) {
	address, there, err := r.services.Load(ctx, name)
	if err == nil && !there {
		err = errUnknown
	}
	return address, err
}

func TestAServiceIsFoundUnderTheAddressThatClaimedItFirst(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		a := &registry{zkmap.New[string, string](v.Session(), "/services")}
		b := &registry{zkmap.New[string, string](v.Session(), "/services")}
		for _, r := range []*registry{a, b} {
			address, err := r.claim(ctx, "billing", map[*registry]string{a: "10.0.0.1", b: "10.0.0.2"}[r])
			require.NoError(t, err)
			require.Equal(t, "10.0.0.1", address)
			address, err = r.find(ctx, "billing")
			require.NoError(t, err)
			require.Equal(t, "10.0.0.1", address)
			_, err = r.find(ctx, "shipping")
			require.ErrorIs(t, err, errUnknown)
		}
	})
}

type mail struct{ To, Text string }

// mailer delivers mails in the background.
type mailer struct {
	out     *zkqueue.Queue[mail] // zkqueue.New[mail](session, "/mails", zkqueue.WithCapacity(100))
	deliver func(mail) error
}

func (m *mailer) send(ctx context.Context, to, text string) error {
	return m.out.Put(ctx, mail{to, text})
}

// run delivers until ctx ends. A mail whose delivery fails, or whose process dies, comes again.
func (m *mailer) run(ctx context.Context) error {
	for {
		d, err := m.out.Receive(ctx)
		if err != nil {
			return err
		}
		if m.deliver(d.Value) == nil {
			err = d.Ack(ctx)
		} else {
			err = d.Nack(ctx)
		}
		if err != nil && !errors.Is(err, zksync.ErrLost) { // lost: another process has it now
			return err
		}
	}
}

func TestAMailIsDeliveredThoughTheFirstAttemptFails(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		queue := func() *zkqueue.Queue[mail] {
			return zkqueue.New[mail](v.Session(), "/mails", zkqueue.WithCapacity(100))
		}
		delivered := make(chan mail, 2)
		attempts := 0
		worker := &mailer{queue(), func(m mail) error {
			if attempts++; attempts == 1 {
				return errors.New("the mail server is away")
			}
			delivered <- m
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- worker.run(ctx) }()
		sender := &mailer{out: queue()}
		require.NoError(t, sender.send(ctx, "ann", "hello"))
		require.NoError(t, sender.send(ctx, "bob", "hello"))
		require.Equal(t, mail{"ann", "hello"}, <-delivered, "it has kept its place")
		require.Equal(t, mail{"bob", "hello"}, <-delivered)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// stock has items that may have to be waited for.
type stock struct {
	mu     *zksync.Mutex   // zksync.NewMutex(session, "/stock/lock")
	filled *zkcond.Cond    // zkcond.New(mu, "/stock/filled")
	items  *zkatomic.Int64 // zkatomic.NewInt64(session, "/stock/items")
}

// take waits at most a second for an item.
func (s *stock) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l, err := s.mu.LockContext(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if l != nil { // nil if the wait could not lock again
			_ = l.Unlock()
		}
	}()
	for {
		n, err := s.items.Load(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			_, err = s.items.Add(ctx, -1)
			return err
		}
		if l, err = s.filled.WaitContext(ctx, l); err != nil {
			return err
		}
	}
}

func TestATakeThatEndsWhileAnotherHoldsTheLockReturnsAnErrorThatSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		in := func(s *zksync.Session) *stock {
			m := zksync.NewMutex(s, "/stock/lock")
			return &stock{m, zkcond.New(m, "/stock/filled"), zkatomic.NewInt64(s, "/stock/items")}
		}
		ours, other := in(v.Session()), in(v.Session())
		require.ErrorIs(t, ours.take(t.Context()), context.DeadlineExceeded)
		require.True(t, other.mu.TryLock(), "it had locked again, and unlocked")
		other.mu.Unlock()

		ended := make(chan error, 1)
		go func() { ended <- ours.take(t.Context()) }()
		time.Sleep(time.Second / 2)
		other.mu.Lock()
		err := <-ended
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.ErrorContains(t, err, "; the lock is not held (only a reentrant one is still unlocked): it could not be locked again")
		_, err = other.items.Add(t.Context(), 1)
		require.NoError(t, err)
		other.filled.Signal()
		other.mu.Unlock()
		require.NoError(t, ours.take(t.Context()))
	})
}

// reports makes a report every night, on one of the machines.
type reports struct {
	cron *zkcron.Cron // zkcron.New(session, "/reports")
	make func(ctx context.Context, night time.Time) error
}

func (r *reports) run(ctx context.Context) error {
	r.cron.At("nightly", "0 3 * * *", func(ctx context.Context, t zkcron.Tick) error {
		return r.make(ctx, t.Scheduled)
	})
	return r.cron.Run(ctx)
}

func TestAReportIsMadeOnceANightThoughThreeMachinesCould(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) { // it takes two nights
		ctx, cancel := context.WithCancel(t.Context())
		nights := make(chan time.Time, 100)
		ended := make(chan error, 3)
		for range 3 {
			r := &reports{zkcron.New(v.Session(zksync.WithTimeout(time.Hour)), "/reports"), func(_ context.Context, night time.Time) error {
				nights <- night
				return nil
			}}
			go func() { ended <- r.run(ctx) }()
		}
		time.Sleep(48 * time.Hour)
		cancel()
		for range 3 {
			<-ended
		}
		close(nights)
		last, count := time.Time{}, 0
		for night := range nights {
			require.Equal(t, 3, night.Hour())
			require.True(t, last.IsZero() || night.Equal(last.AddDate(0, 0, 1)))
			last = night
			count++
		}
		require.Equal(t, 2, count)
	}, zktest.WithVirtualLimit(72*time.Hour))
}
