package zksync_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// linker hands on the traceparent of the context, and keeps the ends.
type linker struct{ kept[zksync.AcquireEndData] }

type parentKey struct{}

func (l *linker) AcquireEnd(_ context.Context, d zksync.AcquireEndData) { l.add(d) }

func (l *linker) Propagate(ctx context.Context) string {
	parent, _ := ctx.Value(parentKey{}).(string)
	return parent
}

// parent is a traceparent, and spanned a context with it.
func parent(n int) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

func spanned(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, parentKey{}, parent(n))
}

// ahead is what is known of who held before the newest grant, or the end of the wait.
func (l *linker) ahead(t *testing.T) string {
	got := l.take()
	require.Len(t, got, 1)
	if d := got[0]; d.Ahead.PID == os.Getpid() {
		return d.Ahead.Name + " " + d.AheadTrace
	}
	return ""
}

func TestAWaiterLearnsTheTraceOfTheHolder(t *testing.T) {
	for _, detects := range detections {
		requests := map[bool]int{}
		for _, propagates := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				told := &linker{}
				var tracer zksync.Tracer = told
				if !propagates {
					tracer = endsTracer{&told.kept}
				}
				mutex := func(name string) *zksync.Mutex {
					return zksync.NewMutex(srv.Session(t, append(detects, zksync.WithTracer(tracer), zksync.WithName(name))...), "/locks/a")
				}
				one, two, three := mutex("one"), mutex("two"), mutex("three")
				before := srv.Requests()
				l, err := one.LockContext(spanned(t.Context(), 1))
				require.NoError(t, err)
				require.Equal(t, "", told.ahead(t))
				data, _ := srv.Node(l.Node())
				second, third := lock(spanned(t.Context(), 2), two), lock(spanned(t.Context(), 3), three)
				require.NoError(t, l.Unlock())
				l = <-second
				if !propagates {
					require.Equal(t, "", told.ahead(t))
					require.NotContains(t, string(data.Data), "trace")
				} else {
					require.Equal(t, "one "+parent(1), told.ahead(t))
					require.Contains(t, string(data.Data), `"trace":"`+parent(1)+`"`)
				}
				require.NoError(t, l.Unlock())
				l = <-third
				if propagates {
					require.Equal(t, "two "+parent(2), told.ahead(t))
				}
				require.NoError(t, l.Unlock())
				requests[propagates] = srv.Requests() - before
			})
		}
		require.Equal(t, requests[false]+2, requests[true], "one for each wait")
	}
}

func TestAWaitThatFailsLearnsTheTraceOfTheHolder(t *testing.T) {
	for _, detects := range detections {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			told := &linker{}
			held, err := zksync.NewMutex(srv.Session(t, zksync.WithTracer(told), zksync.WithName("one")), "/locks/a").LockContext(spanned(t.Context(), 1))
			require.NoError(t, err)
			told.take()
			m := zksync.NewMutex(srv.Session(t, append(detects, zksync.WithTracer(told), zksync.WithName("two"))...), "/locks/a")
			ctx, cancel := context.WithTimeout(spanned(t.Context(), 2), time.Second)
			defer cancel()
			_, err = m.LockContext(ctx)
			require.ErrorContains(t, err, "held by")
			require.Equal(t, "one "+parent(1), told.ahead(t))

			// The last one that was ahead has left without a hold: it is not known who held.
			leaves, leave := context.WithCancel(t.Context())
			lock(leaves, zksync.NewMutex(srv.Session(t), "/locks/a"))
			got := lock(spanned(t.Context(), 3), m)
			leave()
			time.Sleep(time.Second)
			require.NoError(t, held.Unlock())
			l := <-got
			require.Equal(t, "", told.ahead(t))

			// A hand-over needs no request.
			before := srv.Requests()
			next := lock(spanned(t.Context(), 4), m)
			require.NoError(t, l.Unlock())
			l = <-next
			require.Equal(t, "two "+parent(3), told.ahead(t))
			require.Equal(t, before, srv.Requests())
			require.NoError(t, l.Unlock())
		})
	}
}

func TestATraceparentIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTracer(&linker{}))
		for text, valid := range map[string]bool{parent(1): true, "": false, "00-1-2-01": false, parent(0): false} {
			m, ctx := zksync.NewMutex(s, "/locks/a"), context.WithValue(t.Context(), parentKey{}, text)
			for _, lock := range []func(context.Context) (*zksync.Lease, error){m.LockContext, m.TryLockContext} {
				l, err := lock(ctx)
				require.NoError(t, err)
				data, _ := srv.Node(l.Node())
				require.Equal(t, valid, node.Decode(data.Data).Trace == text && text != "", text)
				require.NoError(t, l.Unlock())
			}
		}
	})
}

// The entry that takes the place of another one has its traceparent.
func TestADowngradedEntryKeepsItsTraceparent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		m := zkrwmutex.New(srv.Session(t, zksync.WithTracer(&linker{})), "/locks/a")
		w, err := m.LockContext(spanned(t.Context(), 1))
		require.NoError(t, err)
		r, err := m.Downgrade(t.Context(), w)
		require.NoError(t, err)
		require.NotEqual(t, w.Node(), r.Node())
		data, _ := srv.Node(r.Node())
		require.Equal(t, parent(1), node.Decode(data.Data).Trace)
		require.NoError(t, r.Unlock())
	})
}

func TestEveryKindOfEntryHasATraceparent(t *testing.T) {
	for _, detects := range detections {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			told := &linker{}
			s := srv.Session(t, append(detects, zksync.WithTracer(told), zksync.WithName("one"))...)
			other := srv.Session(t, append(detects, zksync.WithTracer(told))...)
			for kind, lock := range locks {
				l, err := lock(spanned(t.Context(), 1), s, "/locks/"+kind)
				require.NoError(t, err)
				told.take()
				data, _ := srv.Node(l.Node())
				require.Equal(t, parent(1), node.Decode(data.Data).Trace, kind)
				time.AfterFunc(time.Second, func() { _ = l.Unlock() })
				next, err := lock(spanned(t.Context(), 2), other, "/locks/"+kind)
				require.NoError(t, err)
				require.Equal(t, "one "+parent(1), told.ahead(t), kind)
				require.NoError(t, next.Unlock())
			}
		})
	}
}

// A waiter whose own entry has no traceparent, as its request is not sampled, reads nobody's.
func TestAWaiterWithoutATraceReadsNone(t *testing.T) {
	requests := map[string]int{}
	for name, tracer := range map[string]zksync.Tracer{"no tracer": nil, "unsampled": &linker{}} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			first, err := zksync.NewMutex(srv.Session(t), "/a").LockContext(t.Context())
			require.NoError(t, err)
			m := zksync.NewMutex(srv.Session(t, zksync.WithTracer(tracer)), "/a")
			before := srv.Requests()
			time.AfterFunc(time.Second, func() { _ = first.Unlock() })
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			requests[name] = srv.Requests() - before
			require.NoError(t, l.Unlock())
		})
	}
	require.Equal(t, requests["no tracer"], requests["unsampled"])
}
