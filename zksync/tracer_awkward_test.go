package zksync_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// awkward is a tracer that notes its calls, and then calls the function for that call, if there is one.
type awkward struct {
	notes
	end     func()
	release func()
}

func (h *awkward) AcquireStart(ctx context.Context, d zksync.AcquireStartData) context.Context {
	h.write("start %s", d.Path)
	return ctx
}

func (h *awkward) AcquireEnd(_ context.Context, d zksync.AcquireEndData) {
	h.write("end %s, granted %v", d.Path, d.Err == nil)
	if h.end != nil {
		h.end()
	}
}

func (h *awkward) Release(_ context.Context, d zksync.ReleaseData) {
	h.write("release %s", d.Path)
	if h.release != nil {
		h.release()
	}
}

func (h *awkward) Lost(_ context.Context, d zksync.LossData) {
	h.write("lost %s: %s", d.Path, d.Reason)
}

// Close ends all leases before it calls the tracer, so no holder waits for a slow one.
func TestASlowTracerDelaysNoHolderAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &awkward{release: func() { time.Sleep(20 * time.Second) }}
		s := zktest.Run(t).Session(t, zksync.WithTracer(h))
		var all []*zksync.Lease
		for i := range 3 {
			l, err := zksync.NewMutex(s, fmt.Sprint("/", i), zksync.WithMaxHold(10*time.Second)).LockContext(t.Context())
			require.NoError(t, err)
			all = append(all, l)
		}
		h.take()
		began := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		for _, l := range all {
			<-l.Done()
		}
		require.Zero(t, time.Since(began))
		require.NoError(t, <-closed)
		require.Equal(t, time.Minute, time.Since(began), "each node is there until its release was traced")
		require.ElementsMatch(t, []string{"release /0", "release /1", "release /2"}, h.take())
	})
}

// A call that fails may have had a lease, as here, where its context ended while it waited for a hold of its own process. No caller
// got that lease, so the tracer is called with neither its grant nor its end.
func TestALeaseThatNoCallerGotIsNotTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		tr := &awkward{}
		s := srv.Session(t, zksync.WithTracer(tr))
		rw := zkrwmutex.New(s, "/a")
		rw.RLock()
		srv.Expire(s.ID())
		time.Sleep(5 * time.Second)
		tr.take()
		for _, end := range []func(cancel func()){
			func(cancel func()) { cancel() },
			func(func()) { srv.Expire(s.ID()) }, // then the call waits for the next grant
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(5*time.Second, func() { end(cancel) })
			_, err := rw.LockContext(ctx)
			require.ErrorContains(t, err, "a hold of this process that was lost is not unlocked yet")
			require.Equal(t, []string{"start /a", "end /a, granted false"}, tr.take())
		}
		rw.RUnlock()
	})
}

// A lease may end at the instant of its grant. Its end is traced after its grant.
func TestALeaseThatEndsBeforeItsCallerGetsIt(t *testing.T) {
	for end, want := range map[string]string{"close": "release /a", "bound": "lost /a: max-hold"} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			tr := &awkward{}
			s := srv.Session(t, zksync.WithTracer(tr))
			tr.end = func() { // the call has the lease, and has not returned it
				if end == "close" {
					go s.Close()
				}
				time.Sleep(10 * time.Second)
				tr.write("end returns")
			}
			l, err := zksync.NewMutex(s, "/a", zksync.WithMaxHold(time.Second)).LockContext(t.Context())
			require.NoError(t, err)
			require.Error(t, l.Err())
			require.Equal(t, []string{"start /a", "end /a, granted true", "end returns", want}, tr.take())
		})
	}
}

// A tracer that panics in a request whose server recovers, as net/http does, leaves no lock behind.
func TestATracerThatPanicsLeavesNoLockBehind(t *testing.T) {
	for name, lock := range locks {
		for _, at := range []string{"grant", "release"} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				tr := &awkward{}
				s := srv.Session(t, zksync.WithTracer(tr))
				if fail := func() { panic("tracer") }; at == "grant" {
					tr.end = fail
				} else {
					tr.release = fail
				}
				require.PanicsWithValue(t, "tracer", func() {
					l, err := lock(t.Context(), s, "/a")
					require.NoError(t, err)
					_ = l.Unlock()
				}, name)
				tr.end, tr.release = nil, nil
				began := time.Now()
				l, err := lock(t.Context(), srv.Session(t), "/a")
				require.NoError(t, err, name)
				require.Zero(t, time.Since(began), "%s: the node is removed", name)
				require.NoError(t, l.Unlock())
				l, err = lock(t.Context(), s, "/a")
				require.NoError(t, err, name)
				require.NoError(t, l.Unlock())
			})
		}
	}
}

type slowWait struct{ awkward }

func (s *slowWait) Wait(context.Context, zksync.WaitData) { time.Sleep(2 * time.Second) }

type notedWait struct{ awkward }

func (n *notedWait) Wait(context.Context, zksync.WaitData) { n.write("wait") }

// The wait has ended while the first of two tracers was called, so the second is not.
func TestNoWaitIsTracedAfterItsEndBecauseOfAnotherTracer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		first, err := zksync.NewMutex(srv.Session(t), "/a").LockContext(t.Context())
		require.NoError(t, err)
		noted := &notedWait{}
		s := srv.Session(t, zksync.WithTracer(zksync.Tracers(&slowWait{}, noted)))
		time.AfterFunc(time.Second, func() { _ = first.Unlock() })
		l, err := zksync.NewMutex(s, "/a").LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"start /a", "end /a, granted true"}, noted.take())
		require.NoError(t, l.Unlock())
	})
}
