package zksync_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// diary is a tracer that writes down what it is told.
type diary struct{ notes }

// notes are lines of text.
type notes struct {
	mu    sync.Mutex
	lines []string
}

type traced struct{}

func (d *notes) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *notes) take() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func (d *diary) AcquireStart(ctx context.Context, data zksync.AcquireStartData) context.Context {
	d.write("start %s %s", data.Kind, data.Path)
	return context.WithValue(ctx, traced{}, "yes")
}

func (d *diary) AcquireEnd(ctx context.Context, data zksync.AcquireEndData) {
	d.write("end %v after %v, error %v, epoch %d, ours %v", !data.Token.IsZero(), data.Waited, data.Err, data.Epoch, ctx.Value(traced{}))
}

func (d *diary) Release(ctx context.Context, data zksync.ReleaseData) {
	d.write("release %s after %v, ours %v", data.Path, data.Held, ctx.Value(traced{}))
}

func (d *diary) Lost(_ context.Context, data zksync.LossData) {
	d.write("lost %s after %v: %v", data.Path, data.Held, data.Err)
}

func (d *diary) StateChange(data zksync.StateChangeData) { d.write("%v to %v", data.From, data.To) }

func TestATracerIsToldOfEverythingInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		d := &diary{}
		s := srv.Session(t, zksync.WithTracer(d))
		m := zksync.NewMutex(s, "/locks/a")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.LockContext(ctx)
		require.Error(t, err)
		require.NoError(t, l.Unlock())
		require.Equal(t, []string{
			"start lock /locks/a",
			"end true after 0s, error <nil>, epoch 1, ours yes",
			"start lock /locks/a",
			"end false after 1s, error context deadline exceeded: held by this process for 2s, epoch 0, ours yes",
			"release /locks/a after 2s, ours yes",
		}, d.take())

		_, err = m.LockContext(t.Context())
		require.NoError(t, err)
		d.take()
		srv.Expire(s.ID())
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{
			"lost /locks/a after 0s: zksync: lease lost: zktest:2181 says that the session has expired",
			"connected to suspended", "suspended to lost", "lost to connected",
		}, d.take())
	})
}

// What is documented is told, also when the servers cannot be asked to take the lease back.
func TestATracerIsToldEverythingOfARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		told := &releases{}
		s := srv.Session(t, zksync.WithTracer(told))
		for _, cut := range []func() func(){func() func() { return func() {} }, srv.Refuse} {
			l, err := zksync.NewMutex(s, "/locks/a", zksync.WithName("orders")).LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			heal := cut()
			srv.Disconnect(s.ID())
			require.NoError(t, l.Unlock())
			heal()
			data := reflect.ValueOf(told.last)
			for i := 1; i < data.NumField(); i++ {
				require.False(t, data.Field(i).IsZero(), data.Type().Field(i).Name)
			}
			time.Sleep(time.Second)
		}
	})
}

// releases keeps the last release.
type releases struct {
	diary
	last zksync.ReleaseData
}

func (r *releases) Release(_ context.Context, data zksync.ReleaseData) { r.last = data }

// A tracer that takes its time holds up nobody who must be told of a loss.
func TestASlowTracerDelaysNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTracer(slowTracer{}))
		var leases []*zksync.Lease
		for i := range 5 {
			l, err := zksync.NewMutex(s, fmt.Sprintf("/locks/%d", i)).LockContext(t.Context())
			require.NoError(t, err)
			leases = append(leases, l)
		}
		srv.Expire(s.ID())
		synctest.Wait()
		for _, l := range leases {
			require.ErrorIs(t, l.Err(), zksync.ErrLost)
		}
	})
}

type slowTracer struct{}

func (slowTracer) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (slowTracer) AcquireEnd(context.Context, zksync.AcquireEndData) {}
func (slowTracer) Lost(context.Context, zksync.LossData)             { time.Sleep(time.Hour) }

// A request for more permits than there are waits outside the queue, and tries again.
func TestATracerIsToldOnceOfARequestThatWaitsForAResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		d := &diary{}
		w := zksemaphore.NewWeighted(srv.Session(t, zksync.WithTracer(d)), "/sem", 1)
		d.take()
		for want := int64(2); want <= 3; want++ {
			time.AfterFunc(time.Second, func() { _ = w.Resize(t.Context(), want) })
			l, err := w.AcquireLease(t.Context(), want)
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
			require.Equal(t, []string{
				"start permit /sem",
				"end true after 1s, error <nil>, epoch 1, ours yes",
				"release /sem after 0s, ours yes",
			}, d.take())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.AcquireLease(ctx, 4)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{
			"start permit /sem",
			"end false after 1s, error context deadline exceeded: 4 asked for, and there are 3 in all, epoch 0, ours yes",
		}, d.take())
	})
}

func TestATracerIsToldOnceOfAnAttemptDuringAResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		d := &diary{}
		other := zksemaphore.NewWeighted(srv.Session(t), "/sem", 1)
		held, err := other.AcquireLease(t.Context(), 1)
		require.NoError(t, err)
		w := zksemaphore.NewWeighted(srv.Session(t, zksync.WithTracer(d)), "/sem", 1)
		d.take()
		srv.Intercept(zktest.On(zktest.GetChildren, "/sem/queue").Nth(1).Delay(time.Second))
		time.AfterFunc(time.Second/2, func() { _ = other.Resize(t.Context(), 2) })
		l, err := w.TryAcquireLease(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, []string{
			"start permit /sem",
			"end true after 1s, error <nil>, epoch 1, ours yes",
		}, d.take())
		require.NoError(t, l.Unlock())
		require.NoError(t, held.Unlock())
	})
}
