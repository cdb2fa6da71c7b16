package queue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

func TestALossIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		c, told := w.client("a"), 0
		p, err := w.queue(c, "lock", "").Obtain(context.Background(), func(*queue.Ticket) { told++ })
		require.NoError(t, err)
		w.srv.Expire(c.session())
		w.pass()
		require.Equal(t, 1, told)
		p.OnLoss(func(p *queue.Ticket) {
			p.End(queue.Replaced, 0) // must not have it told again
			told++
		})
		require.Equal(t, 2, told, "and once to whoever comes later")
	})
}

// agreed is a config on which all agree for ever.
type agreed struct{}

func (agreed) Learn(context.Context, *zkconn.Epoch, int64) (queue.Policy, error) {
	return queue.WeightedPolicy(1), nil
}
func (agreed) Follow(ctx context.Context, e *zkconn.Epoch, _ int64, _ func()) (*zkconn.Watch, error) {
	return e.Watch(ctx, dir, func(zkconn.Event) {})
}
func (agreed) Check() []any                                 { return []any{&zk.CheckVersionRequest{Path: dir, Version: -1}} }
func (agreed) Founded(context.Context, *zkconn.Epoch) error { return nil }

func TestATicketIsGivenUpForOneUnderAConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		q, lost := w.queue(w.client("a"), "lock", ""), func(*queue.Ticket) { t.Error("lost") }
		q.Config = agreed{}
		old, err := q.Obtain(t.Context(), lost)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p, err := q.ObtainFrom(ctx, lost, old)
		require.NoError(t, err)
		require.True(t, old.Over())
		p.Leave(time.Second)
	})
}

// lastMoment is a config that nobody learns in this session, and meanwhile the context ends.
type lastMoment struct {
	agreed
	end context.CancelFunc
}

func (c lastMoment) Learn(context.Context, *zkconn.Epoch, int64) (queue.Policy, error) {
	c.end()
	return nil, zkconn.ErrOver
}

func TestNoTicketWithoutAnErrorIfTheContextEndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		q := w.queue(w.client("a"), "lock", "")
		ctx, cancel := context.WithCancel(t.Context())
		q.Config = lastMoment{end: cancel}
		_, err := q.Obtain(ctx, func(*queue.Ticket) {})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A stranger deletes every entry as soon as it is there.
func TestAStrangerWhoDeletesEveryEntryMakesNoStormOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		w.enter("a", "lock", "", false)
		w.pass()
		w.begin()
		w.enter("b", "lock", "", false)
		for range 10_000 {
			time.Sleep(time.Millisecond)
			if path := w.newest("b"); path != "" {
				w.srv.Delete(path)
			}
		}
		requests := strings.Count(w.settle(), "b> ")
		require.Less(t, requests, 100)
		t.Log(requests)
	})
}
