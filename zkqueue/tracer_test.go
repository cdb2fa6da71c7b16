package zkqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// events is a tracer that keeps the events of elements, and the losses of leases.
type events struct {
	mu  sync.Mutex
	all []string
}

type caller struct{}

func (*events) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (*events) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (e *events) Lost(context.Context, zksync.LossData) { e.add("lost") }

func (e *events) Delivery(ctx context.Context, d zksync.DeliveryData) {
	if d.Path != "/q" || d.Name != "mails" || ctx.Value(caller{}) != "yes" {
		panic(fmt.Sprint(d))
	}
	text := d.Event
	if d.Attempt > 0 {
		text += fmt.Sprint(" ", d.Attempt)
	}
	if !d.Token.IsZero() {
		text += " with a token"
	}
	if d.Held > 0 {
		text += fmt.Sprint(" after ", d.Held)
	}
	e.add(text)
}

func (e *events) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, text)
}

func (e *events) take() []string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all
	e.all = nil
	return all
}

// traced runs f with a queue of one process, whose tracer is e, and that of another process.
func traced(t *testing.T, f func(t *testing.T, ctx context.Context, srv *zktest.Server, e *events, s *zksync.Session, q *zkqueue.Queue[string])) {
	synctest.Test(t, func(t *testing.T) {
		srv, e := zktest.Run(t), &events{}
		s := srv.Session(t, zksync.WithTracer(e))
		q := zkqueue.New[string](s, "/q", zksync.WithName("mails"), zkqueue.WithCapacity(3))
		f(t, context.WithValue(t.Context(), caller{}, "yes"), srv, e, s, q)
	})
}

func TestWhatHappensToAnElementIsTraced(t *testing.T) {
	traced(t, func(t *testing.T, ctx context.Context, srv *zktest.Server, e *events, s *zksync.Session, q *zkqueue.Queue[string]) {
		for range 3 {
			require.NoError(t, q.Put(ctx, "a"))
		}
		done, err := q.Offer(ctx, "b")
		require.NoError(t, err)
		require.False(t, done)
		require.Equal(t, []string{"put", "put", "put"}, e.take(), "not the one that found the queue full")

		d, err := q.Receive(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"received 1 with a token"}, e.take())
		time.Sleep(time.Second)
		require.NoError(t, d.Nack(ctx))
		require.Equal(t, []string{"nacked 1 with a token after 1s"}, e.take())
		require.ErrorIs(t, d.Ack(ctx), zksync.ErrReleased)
		require.Empty(t, e.take())

		d, err = q.Receive(ctx)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, d.Ack(ctx))
		require.Equal(t, []string{"received 2 with a token", "acked 2 with a token after 2s"}, e.take())

		d, err = q.Receive(ctx)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, d.Lease().Unlock())
		require.Equal(t, []string{"received 1 with a token", "nacked 1 with a token after 1s"}, e.take(), "Unlock is Nack")
		require.ErrorIs(t, d.Nack(ctx), zksync.ErrReleased)

		_, err = q.Receive(ctx)
		require.NoError(t, err)
		srv.Expire(s.ID())
		time.Sleep(time.Second)
		require.Equal(t, []string{"received 2 with a token", "lost"}, e.take())

		_, err = q.Receive(ctx)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, s.Close())
		require.Equal(t, []string{"received 3 with a token", "nacked 3 with a token after 1s"}, e.take())
	})
}

func TestElementsThatAreTakenAreTraced(t *testing.T) {
	traced(t, func(t *testing.T, ctx context.Context, _ *zktest.Server, e *events, _ *zksync.Session, q *zkqueue.Queue[string]) {
		fill := func() {
			for range 3 {
				require.NoError(t, q.Put(ctx, "a"))
			}
			d, err := q.Receive(ctx)
			require.NoError(t, err)
			require.NoError(t, d.Nack(ctx))
			e.take()
		}
		fill()
		_, err := q.Take(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"received 2", "acked 2"}, e.take())
		_, ok, err := q.TryTake(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []string{"received 1", "acked 1"}, e.take())
		_, err = q.Take(ctx)
		require.NoError(t, err)
		e.take()
		_, ok, err = q.TryTake(ctx)
		require.NoError(t, err)
		require.False(t, ok)
		require.Empty(t, e.take())
		fill()
		all, err := q.Drain(ctx, 10)
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.Equal(t, []string{"received 2", "acked 2", "received 1", "acked 1", "received 1", "acked 1"}, e.take())
	})
}

// An answer that is lost changes nothing: each event is traced once.
func TestAnEventOfAnElementIsTracedOnce(t *testing.T) {
	traced(t, func(t *testing.T, ctx context.Context, srv *zktest.Server, e *events, s *zksync.Session, q *zkqueue.Queue[string]) {
		for range 3 {
			require.NoError(t, q.Put(ctx, "a"))
		}
		e.take()
		for _, lose := range []func(*zktest.Rule) *zktest.Rule{(*zktest.Rule).LoseReply, (*zktest.Rule).LoseRequest} {
			fault := func() { srv.Intercept(lose(zktest.On(zktest.Multi, "/q/**").Times(1))) }
			fault()
			d, err := q.Receive(ctx)
			require.NoError(t, err)
			fault()
			require.NoError(t, d.Nack(ctx))
			fault()
			_, err = q.Take(ctx)
			require.NoError(t, err)
			fault()
			require.NoError(t, q.Put(ctx, "a"))
			got := e.take()
			require.Len(t, got, 5)
			require.Contains(t, got[1], "nacked")
			require.Equal(t, []string{"acked 2", "put"}, got[3:])
		}
		// An Ack whose session is lost with it may have been applied, or not.
		d, err := q.Receive(ctx)
		require.NoError(t, err)
		e.take()
		srv.Partition(s.ID())
		allow := srv.Refuse()
		failed := d.Ack(ctx)
		require.ErrorIs(t, failed, zksync.ErrLost)
		allow()
		require.True(t, zksync.Ambiguous(failed))
		require.Empty(t, e.take())
	})
}

// Of an Ack and an Unlock at the same time one counts.
func TestOneEndOfADeliveryIsTraced(t *testing.T) {
	traced(t, func(t *testing.T, ctx context.Context, _ *zktest.Server, e *events, _ *zksync.Session, q *zkqueue.Queue[string]) {
		for range 100 {
			require.NoError(t, q.Put(ctx, "a"))
			d, err := q.Receive(ctx)
			require.NoError(t, err)
			e.take()
			var ends sync.WaitGroup
			var acked error
			ends.Go(func() { acked = d.Ack(ctx) })
			ends.Go(func() { _ = d.Lease().Unlock() })
			ends.Go(func() { _ = d.Nack(ctx) })
			ends.Wait()
			got := e.take()
			require.Len(t, got, 1)
			require.Equal(t, acked == nil, strings.HasPrefix(got[0], "acked"), "%v: %v", got, acked)
			if acked != nil {
				_, err = q.Take(ctx)
				require.NoError(t, err)
				e.take()
			}
		}
	})
}

func TestDeadLettersAreTracedAndLoggedOnce(t *testing.T) {
	var lines bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		srv, e := zktest.Run(t), &events{}
		s := srv.Session(t, zksync.WithTracer(e), zksync.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
		raw := zkqueue.New[[]byte](srv.Session(t), "/q", zksync.WithCodec(zksync.Raw))
		q := zkqueue.New[string](s, "/q", zksync.WithName("mails"))
		require.NoError(t, raw.PutAll(t.Context(), [][]byte{[]byte(`"bad"`), []byte("spoilt")}))
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), caller{}, "yes"), time.Minute)
		defer cancel()
		require.NoError(t, q.Work(ctx, 1, func(context.Context, *zkqueue.Delivery[string]) error {
			time.Sleep(time.Second)
			return errors.New("it cannot be done")
		}, zkqueue.WithMaxAttempts(2)))
		require.Equal(t, []string{
			"received 1 with a token", "nacked 1 with a token after 1s", "dead 1", "received 2 with a token", "dead 2 with a token after 1s",
		}, e.take())
		var ids []string
		for d, err := range q.Dead().All(t.Context()) {
			require.NoError(t, err)
			ids = append(ids, d.ID)
		}
		require.Len(t, ids, 2)
		text := regexp.MustCompile(`time=\S+ `).ReplaceAllString(lines.String(), "")
		want := "level=WARN msg=\"an element has become a dead letter\" path=/q item=" + ids[1] + " attempt=1 error=\""
		require.Equal(t, want, text[:min(len(text), len(want))])
		_, text, _ = strings.Cut(text, "\n")
		require.Equal(t, "level=WARN msg=\"an element has become a dead letter\" path=/q item="+ids[0]+" attempt=2 error=\"it cannot be done\"\n", text)
		require.NoError(t, q.Dead().Redrive(context.WithValue(t.Context(), caller{}, "yes"), ids[0]))
		require.Equal(t, []string{"put"}, e.take())
	})
}
