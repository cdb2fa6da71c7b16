package session_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// listener collects the changes that one listener sees.
type listener struct {
	ended chan struct{}
	mu    sync.Mutex
	seen  []zksync.State
}

func listen(s *zksync.Session) *listener {
	l := &listener{ended: make(chan struct{})}
	changes := s.Changes(context.Background()) // from here on nothing is missed
	go func() {
		defer close(l.ended)
		for st := range changes {
			l.mu.Lock()
			l.seen = append(l.seen, st)
			l.mu.Unlock()
		}
	}()
	return l
}

// counted reports whether the session was lost so many times, and is connected again since.
func (l *listener) counted(lost, connected int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[zksync.State]int{}
	for _, st := range l.seen {
		n[st]++
	}
	return n[zksync.Lost] == lost && n[zksync.Connected] >= connected && l.seen[len(l.seen)-1] == zksync.Connected
}

func TestAcceptance108EveryListenerSeesEveryChangeOnceAndInOrder(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		timeout := v.Span(4*time.Second, 12*time.Second)
		s := v.Session(zksync.WithTimeout(timeout))
		all := make([]*listener, 20)
		for i := range all {
			all[i] = listen(s)
		}
		// Others come and go meanwhile.
		churn, stop := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for churn.Err() == nil {
				ctx, cancel := context.WithTimeout(churn, 3*time.Millisecond)
				for range s.Changes(ctx) {
				}
				cancel()
			}
		}()
		v.Disconnect(s)
		v.Eventually(func() bool { return all[0].counted(0, 1) }, "a disconnect")
		v.Expire(s)
		v.Eventually(func() bool { return all[0].counted(1, 2) }, "an expiry")
		heal := v.Partition(s)
		proving.Pause(t, v, v.Span(2*timeout, 5*timeout/4))
		heal()
		v.Eventually(func() bool { return all[0].counted(2, 3) }, "a partition")
		stop()
		<-gone
		require.NoError(t, s.Close())
		for _, l := range all {
			v.Awaits(l.ended, "the end of the changes")
			require.Equal(t, all[0].seen, l.seen)
		}
		if v.Virtual {
			require.Equal(t, []zksync.State{
				zksync.Suspended, zksync.Connected, // a disconnect
				zksync.Suspended, zksync.Lost, zksync.Connected, // an expiry
				zksync.Suspended, zksync.Lost, zksync.Connected, // a partition
				zksync.Closed,
			}, all[0].seen)
		}
		inOrder(t, all[0].seen)
	})
}

// inOrder checks that every change is one: on real servers a session may be resumed, and resumed again,
// before they end it.
func inOrder(t *testing.T, seen []zksync.State) {
	t.Helper()
	before := zksync.Connected
	for i, st := range seen {
		after := map[zksync.State][]zksync.State{
			zksync.Connected: {zksync.Suspended, zksync.Closed},
			zksync.Suspended: {zksync.Connected, zksync.Lost, zksync.Closed},
			zksync.Lost:      {zksync.Connected, zksync.Closed},
		}[before]
		require.True(t, slices.Contains(after, st), "change %d of %v", i, seen)
		before = st
	}
	require.Equal(t, zksync.Closed, before)
}

func TestAcceptance109ASessionThatNeverConnectsIsNotReportedLost(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		timeout := v.Span(time.Second, 4*time.Second)
		outage := v.Span(30*time.Minute, 2*timeout)
		opts := []zksync.SessionOption{zksync.WithTimeout(timeout)}
		var allow func()
		if v.Virtual {
			allow = v.Server.Refuse()
		} else {
			c := &proving.Cable{}
			c.Refuse()
			allow, opts = c.Plug, append(opts, zksync.WithDialer(c.Dial))
		}
		ctx, cancel := context.WithTimeout(t.Context(), outage+v.Patience())
		defer cancel()
		start := time.Now()
		time.AfterFunc(outage, allow)
		s, err := v.Connect(ctx, opts...)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), outage)
		v.Within(start, outage+time.Second, "connecting")
		require.Equal(t, zksync.Connected, s.State())
		require.NoError(t, s.Close())
	})
}

// faultsBeforeClose is what may have become of a session when it is closed.
var faultsBeforeClose = map[string]func(v *proving.Env, s *zksync.Session) (undo func()){
	"connected":         func(*proving.Env, *zksync.Session) func() { return func() {} },
	"without servers":   (*proving.Env).CutOff,
	"in a black hole":   (*proving.Env).Partition,
	"expired":           func(v *proving.Env, s *zksync.Session) func() { v.Expire(s); return func() {} },
	"just disconnected": func(v *proving.Env, s *zksync.Session) func() { v.Disconnect(s); return func() {} },
	"handshakes that hang": func(v *proving.Env, s *zksync.Session) func() {
		heal := v.Partition(s)
		v.Disconnect(s)
		return heal
	},
}

func TestAcceptance110NoGoroutineRemainsAfterClose(t *testing.T) {
	for name, fault := range faultsBeforeClose {
		t.Run(name, func(t *testing.T) {
			proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
				before := v.Goroutines()
				s := v.Session()
				m := zksync.NewMutex(s, proving.LockPath)
				l := v.Lock(m)
				told := l.Done()
				waiting := proving.Begin(context.Background(), m)
				v.Quiet()
				undo := fault(v, s)
				start := time.Now()
				require.NoError(t, s.Close())
				v.Within(start, 2*time.Second+100*time.Millisecond, "closing")
				v.Awaits(waiting.Done, "the waiter to be told")
				if name == "expired" && waiting.Err == nil { // the next session was there before Close
					v.Awaits(waiting.Lease.Done(), "the next holder to be told")
				} else {
					require.ErrorIs(t, waiting.Err, zksync.ErrClosed)
				}
				v.Awaits(told, "the holder to be told")
				require.Equal(t, zksync.Closed, s.State())
				_, err := m.LockContext(context.Background())
				require.ErrorIs(t, err, zksync.ErrClosed)
				undo()
				if !v.Virtual { // a bubble ends with its last goroutine; here the server has some, too
					v.GoroutinesBack(before)
				}
			}, zktest.WithLeftovers())
		})
	}
}
