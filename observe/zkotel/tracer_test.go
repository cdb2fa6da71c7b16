package zkotel_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-menagerie/menagerie/observe/zkotel"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// process is a process with a session and OpenTelemetry's SDK of its own.
type process struct {
	*zksync.Session
	spans    *tracetest.InMemoryExporter
	started  *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	tracer   zksync.Tracer
}

func start(t *testing.T, srv *zktest.Server, opts ...zkotel.Option) *process {
	p := &process{spans: tracetest.NewInMemoryExporter(), started: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	p.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(p.spans), sdktrace.WithSpanProcessor(p.started))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))
	p.tracer = zkotel.New(append([]zkotel.Option{zkotel.WithTracerProvider(p.provider), zkotel.WithMeterProvider(meters)}, opts...)...)
	p.Session = srv.Session(t, zksync.WithTracer(p.tracer))
	return p
}

// request is the context of a request, which its service traces. It ends with the test.
func (p *process) request(t *testing.T, name string) context.Context {
	ctx, span := p.provider.Tracer("service").Start(t.Context(), name)
	t.Cleanup(func() { span.End() })
	return ctx
}

// ended returns the spans with this name, in the order in which they ended, and requires that there are n.
func (p *process) ended(t *testing.T, n int, name string) (found []tracetest.SpanStub) {
	synctest.Wait()
	for _, s := range p.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, n, "spans %q in %v", name, p.names())
	return found
}

func (p *process) names() (all []string) {
	for _, s := range p.spans.GetSpans() {
		all = append(all, s.Name)
	}
	return all
}

// only returns the one span with this name.
func (p *process) only(t *testing.T, name string) tracetest.SpanStub { return p.ended(t, 1, name)[0] }

func took(s tracetest.SpanStub) time.Duration { return s.EndTime.Sub(s.StartTime) }

func attributes(s tracetest.SpanStub) map[string]any {
	all := make(map[string]any)
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

// links are the spans to which s has links.
func links(s tracetest.SpanStub) (all []trace.SpanID) {
	for _, l := range s.Links {
		all = append(all, l.SpanContext.SpanID())
	}
	return all
}

func lock(t *testing.T, ctx context.Context, m *zksync.Mutex) *zksync.Lease {
	l, err := m.LockContext(ctx)
	require.NoError(t, err)
	return l
}

func TestAWaiterLinksToTheHolderInAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a, b := start(t, srv, zkotel.WithPropagation()), start(t, srv, zkotel.WithPropagation())
		l := lock(t, a.request(t, "GET /a"), zksync.NewMutex(a.Session, "/orders/4711/lock", zksync.WithName("orders")))
		time.Sleep(time.Second)
		time.AfterFunc(3*time.Second, func() { _ = l.Unlock() })
		request := b.request(t, "GET /b")
		second := lock(t, request, zksync.NewMutex(b.Session, "/orders/4711/lock", zksync.WithName("orders")))
		time.Sleep(5 * time.Second)
		require.NoError(t, second.Unlock())

		held, waited := a.only(t, "hold orders"), b.only(t, "acquire orders")
		require.Equal(t, 4*time.Second, took(held))
		require.Equal(t, 3*time.Second, took(waited))
		require.Equal(t, trace.SpanKindInternal, waited.SpanKind)
		require.Equal(t, trace.SpanContextFromContext(request).SpanID(), waited.Parent.SpanID())
		require.Equal(t, []trace.SpanID{a.only(t, "acquire orders").SpanContext.SpanID()}, links(waited))
		require.Equal(t, held.SpanContext.TraceID(), waited.Links[0].SpanContext.TraceID())
		require.Equal(t, held.Parent.SpanID(), waited.Links[0].SpanContext.SpanID(), "the hold is a child of the span that the link names")
		attrs := attributes(waited)
		require.Contains(t, attrs["lock.ahead"], "pid")
		delete(attrs, "lock.ahead")
		require.Equal(t, map[string]any{
			"lock.name": "orders", "lock.kind": "lock", "lock.path": "/orders/4711/lock", "lock.outcome": "granted",
			"lock.position": int64(1), "lock.token": second.Token().String(), "lock.node": second.Node(),
		}, attrs)

		hold := b.only(t, "hold orders")
		require.Equal(t, 5*time.Second, took(hold))
		require.Equal(t, waited.EndTime, hold.StartTime)
		require.Equal(t, waited.SpanContext.SpanID(), hold.Parent.SpanID())
		require.Equal(t, map[string]any{
			"lock.name": "orders", "lock.kind": "lock", "lock.path": "/orders/4711/lock", "lock.end": "released",
			"lock.token": second.Token().String(), "lock.node": second.Node(),
		}, attributes(hold))
		require.Equal(t, codes.Unset, hold.Status.Code)
	})
}

func TestOnlyWithPropagationANodeHasATrace(t *testing.T) {
	for _, propagates := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			var opts []zkotel.Option
			if propagates {
				opts = append(opts, zkotel.WithPropagation())
			}
			a, b := start(t, srv, opts...), start(t, srv, opts...)
			request := a.request(t, "GET /a")
			l := lock(t, request, zksync.NewMutex(a.Session, "/a"))
			id := trace.SpanContextFromContext(request).TraceID().String()
			node, ok := srv.Node(l.Node())
			require.True(t, ok)
			require.Equal(t, propagates, strings.Contains(string(node.Data), id), "%s", node.Data)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := zksync.NewMutex(b.Session, "/a").LockContext(ctx)
			require.Error(t, err)
			require.Equal(t, propagates, len(b.only(t, "acquire lock").Links) == 1)
			require.NoError(t, l.Unlock())
		})
	}
}

func TestASpanThatIsNotSampledIsNotPropagated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
		p := start(t, srv, zkotel.WithTracerProvider(never), zkotel.WithPropagation())
		l := lock(t, t.Context(), zksync.NewMutex(p.Session, "/a"))
		node, _ := srv.Node(l.Node())
		require.NotContains(t, string(node.Data), `"00-`)
		require.NoError(t, l.Unlock())
	})
}

func TestAWaiterLinksToTheHolderInItsProcess(t *testing.T) {
	for _, handover := range []int{1, 0} { // handed over, and granted by the servers
		const held = time.Second
		synctest.Test(t, func(t *testing.T) {
			p := start(t, zktest.Run(t))
			m := zksync.NewMutex(p.Session, "/a", zksync.WithName("a"), zksync.WithHandover(handover))
			first := lock(t, t.Context(), m)
			time.AfterFunc(held, func() { _ = first.Unlock() })
			second := lock(t, t.Context(), m)
			require.Equal(t, handover > 0, first.Node() == second.Node())
			require.NoError(t, second.Unlock())
			third := lock(t, t.Context(), m)
			require.NoError(t, third.Unlock())

			holds, waits := p.ended(t, 3, "hold a"), p.ended(t, 3, "acquire a")
			require.Empty(t, waits[0].Links)
			require.Equal(t, held, took(waits[1]))
			require.Equal(t, []trace.SpanID{holds[0].SpanContext.SpanID()}, links(waits[1]))
			require.Empty(t, waits[2].Links, "it did not wait")
		})
	}
}

func TestAWaiterLinksToNoHolderBeforeAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p, other := start(t, srv), srv.Session(t)
		m := zksync.NewMutex(p.Session, "/a")
		first := lock(t, t.Context(), m)
		between := make(chan *zksync.Lease)
		go func() {
			l, _ := zksync.NewMutex(other, "/a").LockContext(t.Context())
			between <- l
		}()
		time.Sleep(time.Second)
		granted := make(chan *zksync.Lease)
		go func() {
			l, _ := m.LockContext(t.Context())
			granted <- l
		}()
		time.Sleep(time.Second)
		require.NoError(t, first.Unlock())
		l := <-between
		time.Sleep(time.Second)
		require.NoError(t, l.Unlock())
		l = <-granted
		require.NoError(t, l.Unlock())
		waits := p.ended(t, 2, "acquire lock")
		require.Equal(t, 2*time.Second, took(waits[1]))
		require.Empty(t, waits[1].Links, "it waited for another process last")
	})
}

func TestAWaitThatEndsWithoutALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t))
		m := zksync.NewMutex(p.Session, "/a", zksync.WithName("a"))
		l := lock(t, t.Context(), m)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.LockContext(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, leave)
		_, err = m.LockContext(gone)
		require.ErrorIs(t, err, context.Canceled)
		_, err = m.TryLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		_, err = zksync.NewMutex(p.Session, "/a//b", zksync.WithName("a")).LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.NoError(t, l.Unlock())

		hold, waits := p.only(t, "hold a"), p.ended(t, 5, "acquire a")
		for i, want := range []struct {
			took    time.Duration
			outcome string
			code    codes.Code
			links   bool
		}{
			{0, "granted", codes.Unset, false},
			{time.Second, "canceled", codes.Error, true},
			{2 * time.Second, "canceled", codes.Unset, true},
			{0, "not_acquired", codes.Unset, true},
			{0, "error", codes.Error, false},
		} {
			require.Equal(t, want.took, took(waits[i]), i)
			require.Equal(t, want.outcome, attributes(waits[i])["lock.outcome"], i)
			require.Equal(t, want.code, waits[i].Status.Code, i)
			if want.links {
				require.Equal(t, []trace.SpanID{hold.SpanContext.SpanID()}, links(waits[i]), i)
			} else {
				require.Empty(t, waits[i].Links, i)
			}
		}
		require.Contains(t, waits[1].Status.Description, "held by this process for 1s")
	})
}

func TestEachEndOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p := start(t, srv)
		for _, c := range []struct {
			end, reason string
			lose        func(*zksync.Lease)
			opts        []zksync.Option
		}{
			{end: "released", lose: func(l *zksync.Lease) { require.NoError(t, l.Unlock()) }},
			{end: "lost", reason: "removed", lose: func(l *zksync.Lease) { l.Done(); srv.Delete(l.Node()) }},
			{end: "max_hold", reason: "max-hold", lose: func(*zksync.Lease) {}, opts: []zksync.Option{zksync.WithMaxHold(2 * time.Second)}},
			{end: "lost", reason: "session", lose: func(*zksync.Lease) { srv.Expire(p.ID()) }},
		} {
			p.spans.Reset()
			l := lock(t, t.Context(), zksync.NewMutex(p.Session, "/a", append(c.opts, zksync.WithName("a"))...))
			time.Sleep(2 * time.Second)
			c.lose(l)
			time.Sleep(time.Minute)
			hold := p.only(t, "hold a")
			require.Equal(t, c.end, attributes(hold)["lock.end"])
			if c.reason == "" {
				require.NotContains(t, attributes(hold), "lock.reason")
				require.Equal(t, codes.Unset, hold.Status.Code)
				require.Equal(t, 2*time.Second, took(hold))
				continue
			}
			require.Equal(t, c.reason, attributes(hold)["lock.reason"])
			require.Equal(t, codes.Error, hold.Status.Code)
			require.Contains(t, hold.Status.Description, "zksync: ")
			require.InDelta(t, 2, took(hold).Seconds(), 1)
			_ = l.Unlock()
			require.Len(t, p.spans.GetSpans(), 2)
		}
	})
}

func TestWorkUnderTheLeaseIsAChildOfTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t))
		type local struct{}
		outer := lock(t, context.WithValue(t.Context(), local{}, "kept"), zksync.NewMutex(p.Session, "/a", zksync.WithName("a")))
		require.Equal(t, "kept", outer.Context().Value(local{}))
		inner := lock(t, outer.Context(), zksync.NewMutex(p.Session, "/b", zksync.WithName("b")))
		_, work := p.provider.Tracer("service").Start(inner.Context(), "work")
		work.End()
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())
		parent := func(name string) trace.SpanID { return p.only(t, name).Parent.SpanID() }
		require.Equal(t, p.only(t, "hold b").SpanContext.SpanID(), parent("work"))
		require.Equal(t, p.only(t, "hold a").SpanContext.SpanID(), parent("acquire b"))
	})
}

func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t), zkotel.WithPaths("/orders/*/lock", "/orders/*/*"), zkotel.WithPaths("/x"))
		for path, names := range map[string][2]string{
			"/orders/4711/lock": {"", "/orders/*/lock"},
			"/orders/4711/b":    {"", "/orders/*/*"},
			"/x":                {"", "/x"},
			"/orders/1/lock":    {"ours", "ours"},
			"/orders/a/b/c":     {"", ""},
		} {
			var opts []zksync.Option
			if names[0] != "" {
				opts = append(opts, zksync.WithName(names[0]))
			}
			p.spans.Reset()
			require.NoError(t, lock(t, t.Context(), zksync.NewMutex(p.Session, path, opts...)).Unlock())
			title := names[1]
			if title == "" {
				title = "lock"
				require.NotContains(t, attributes(p.only(t, "acquire lock")), "lock.name")
			} else {
				require.Equal(t, title, attributes(p.only(t, "acquire "+title))["lock.name"])
			}
			require.Equal(t, path, attributes(p.only(t, "hold "+title))["lock.path"])
		}
	})
	require.PanicsWithValue(t, `zkotel: the pattern "/a[": syntax error in pattern`, func() { zkotel.WithPaths("/a[") })
}

func TestEachPlaceInTheQueueIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p := start(t, srv)
		first := lock(t, t.Context(), zksync.NewMutex(srv.Session(t), "/a"))
		second := zksync.NewMutex(srv.Session(t), "/a")
		go func() {
			_ = second.Do(t.Context(), func(context.Context, *zksync.Lease) error { time.Sleep(2 * time.Second); return nil })
		}()
		time.Sleep(time.Second)
		time.AfterFunc(time.Second, func() { _ = first.Unlock() })
		require.NoError(t, lock(t, t.Context(), zksync.NewMutex(p.Session, "/a")).Unlock())
		waited := p.only(t, "acquire lock")
		require.Equal(t, int64(2), attributes(waited)["lock.position"])
		require.Equal(t, 3*time.Second, took(waited))
		require.NotEmpty(t, waited.Events)
		require.Equal(t, "position", waited.Events[0].Name)
		require.Equal(t, []attribute.KeyValue{attribute.Int("lock.position", 2)}, waited.Events[0].Attributes)
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p, other := start(t, srv), srv.Session(t)
		m := zksync.NewMutex(p.Session, "/a", zksync.WithName("a"))
		for range 2 {
			l := lock(t, t.Context(), zksync.NewMutex(other, "/a"))
			time.AfterFunc(3*time.Second, func() { _ = l.Unlock() })
			l = lock(t, t.Context(), m)
			_, err := m.TryLockContext(t.Context())
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			time.Sleep(7 * time.Second)
			require.NoError(t, l.Unlock())
		}
		data := p.metrics(t)
		require.Equal(t, []point{{`lock.kind=lock,lock.name=a,lock.outcome=granted`, 2, 6}, {`lock.kind=lock,lock.name=a,lock.outcome=not_acquired`, 2, 0}}, points[float64](t, data["lock.acquire.duration"], "s"))
		require.Equal(t, []point{{`lock.end=released,lock.kind=lock,lock.name=a`, 2, 14}}, points[float64](t, data["lock.hold.duration"], "s"))
		waiters := points[int64](t, data["lock.waiters"], "{entry}")
		require.Len(t, waiters, 1)
		require.Equal(t, `lock.kind=lock,lock.name=a`, waiters[0].labels)
		require.Equal(t, 2., waiters[0].sum)
		require.GreaterOrEqual(t, waiters[0].count, uint64(2))
	})
}

func (p *process) metrics(t *testing.T) map[string]metricdata.Metrics {
	var all metricdata.ResourceMetrics
	require.NoError(t, p.reader.Collect(context.Background(), &all))
	require.Len(t, all.ScopeMetrics, 1)
	byName := make(map[string]metricdata.Metrics)
	for _, m := range all.ScopeMetrics[0].Metrics {
		byName[m.Name] = m
	}
	return byName
}

type point struct {
	labels string
	count  uint64
	sum    float64
}

func points[N int64 | float64](t *testing.T, m metricdata.Metrics, unit string) (all []point) {
	require.Equal(t, unit, m.Unit)
	require.NotEmpty(t, m.Description)
	h, ok := m.Data.(metricdata.Histogram[N])
	require.True(t, ok, "%T", m.Data)
	for _, p := range h.DataPoints {
		all = append(all, point{p.Attributes.Encoded(attribute.DefaultEncoder()), p.Count, float64(p.Sum)})
	}
	slices.SortFunc(all, func(a, b point) int { return strings.Compare(a.labels, b.labels) })
	return all
}
