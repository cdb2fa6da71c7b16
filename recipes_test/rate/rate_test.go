package zkrate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
)

const path = "/rates/api"

// meter has the events of all processes.
type meter struct {
	mu     sync.Mutex
	start  time.Time
	events []time.Duration // since start, in order
}

func newMeter() *meter { return &meter{start: time.Now()} }

func (m *meter) event() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, time.Since(m.start))
}

// within is how many events there were from one instant to another.
func (m *meter) within(from, to time.Duration) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.events {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// check checks each window from one event to another, so each of any length: no more events than burst and limit allow. It follows the
// bucket that the limit describes, which is the same: it must never be short.
func (m *meter) check(t *testing.T, limit rate.Limit, burst int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	level, last := float64(burst), time.Duration(0)
	for i, at := range m.events {
		level = min(float64(burst), level+float64(limit)*(at-last).Seconds()) - 1
		last = at
		require.GreaterOrEqual(t, level, -1e-6, "event %d of %d, after %v: more than %v a second and a burst of %d", i, len(m.events), at, limit, burst)
	}
}

// busy uses the limiter as fast as it lets it, until ctx ends.
func (m *meter) busy(ctx context.Context, l *zkrate.Limiter) {
	for l.Wait(ctx) == nil {
		m.event()
	}
}

// during runs f for each limiter, and returns after d, when all have ended.
func during(d time.Duration, f func(context.Context, *zkrate.Limiter), ls ...*zkrate.Limiter) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, l := range ls {
		all.Go(func() { f(ctx, l) })
	}
	time.Sleep(d)
	cancel()
	all.Wait()
}

func limiters(v *proving.Env, n int, limit rate.Limit, burst int) (ls []*zkrate.Limiter) {
	for range n {
		ls = append(ls, zkrate.New(v.Session(), path, limit, burst))
	}
	return ls
}

func TestAcceptance206OneProcessHasTheWholeLimit(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := limiters(v, 1, 10, 5)[0]
		for range 5 {
			require.True(t, l.Allow(), "the burst")
		}
		require.False(t, l.Allow())
		time.Sleep(100 * time.Millisecond)
		require.True(t, l.Allow())
		require.False(t, l.Allow())
		m := newMeter()
		during(10*time.Second, m.busy, l)
		require.InDelta(t, 100, len(m.events), 1)
	})
}

func TestAcceptance206EquallyBusyProcessesUseTheWholeLimit(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			m, ls := newMeter(), limiters(v, n, 100, 50)
			during(time.Minute, m.busy, ls...)
			m.check(t, 100, 50)
			require.GreaterOrEqual(t, m.within(10*time.Second, time.Minute), 95*50)
		})
	}
}

func TestAcceptance206OneBusyAmongNineIdle(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, ls := newMeter(), limiters(v, 10, 100, 50)
		during(10*time.Second, m.busy, ls...)
		during(time.Minute, m.busy, ls[0])
		m.check(t, 100, 50)
		require.GreaterOrEqual(t, m.within(30*time.Second, 70*time.Second), 90*40)
	})
}

func TestAcceptance206ParametersMustBeTheSame(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		require.NoError(t, zkrate.New(v.Session(), path, 10, 5).Wait(t.Context()))
		l := zkrate.New(v.Session(), path, 10, 6)
		err := l.Wait(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "10 events a second with a burst of 5 there, and 10 events a second with a burst of 6 here")
		require.False(t, l.Allow())
	})
}

func TestAcceptance206TwoProcessesShareOnAnyServers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := zkrate.New(v.Session(), path, 50, 10), zkrate.New(v.Session(), path, 50, 10)
		m := newMeter()
		during(v.Span(10*time.Second, 5*time.Second), m.busy, a, b)
		took := time.Since(m.start).Seconds()
		require.LessOrEqual(t, float64(len(m.events)), 10+50*took)
		require.GreaterOrEqual(t, float64(len(m.events)), 50*took*7/10)
		st, err := a.State(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Processes)
		require.Equal(t, rate.Limit(50), st.Limit)
		require.Equal(t, "50 events a second with a burst of 10; 2 processes", st.Detail)
	})
}
