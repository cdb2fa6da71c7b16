package survey

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// live runs a survey until the test ends. latest returns its newest view once nothing more happens.
func live(t *testing.T, s *Survey) (latest func() *View) {
	ctx, cancel := context.WithCancel(t.Context())
	var newest atomic.Pointer[View]
	done := make(chan error, 1)
	go func() { done <- s.Live(ctx, newest.Store) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return func() *View {
		synctest.Wait()
		return newest.Load()
	}
}

func lock(t *testing.T, s *zksync.Session, path string) *zksync.Lease {
	l, err := zksync.NewMutex(s, path).LockContext(t.Context())
	require.NoError(t, err)
	return l
}

func TestAViewShowsTheHoldBesideTheUsualOnesAndTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a, b := srv.Session(t, zksync.WithName("a")), srv.Session(t, zksync.WithName("b"))
		first := lock(t, a, "/x/a")
		latest := live(t, &Survey{Session: srv.Session(t), Root: "/"})
		time.Sleep(time.Second)
		require.NoError(t, first.Unlock())
		for _, d := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
			time.Sleep(time.Second)
			l := lock(t, a, "/x/a")
			time.Sleep(d)
			require.NoError(t, l.Unlock())
		}
		time.Sleep(time.Second)
		held := lock(t, a, "/x/a")
		waits := make(chan *zksync.Lease)
		go func() { waits <- lock(t, b, "/x/a") }()
		time.Sleep(6 * time.Second)

		v := latest()
		require.Empty(t, v.Outage)
		require.Len(t, v.Objects, 1)
		o := v.Objects[0]
		require.Equal(t, "/x/a", o.Path)
		require.Equal(t, 3, o.Usual.Holds, "the one of the first look is no measure")
		require.InDelta(t, 3*time.Second, time.Duration(o.Usual.Median), float64(pause))
		require.InDelta(t, 9*time.Second, time.Duration(o.Usual.P99), float64(pause))
		require.Len(t, o.Entries, 2)
		holder, waiter := o.Entries[0], o.Entries[1]
		require.InDelta(t, 6*time.Second, time.Duration(holder.For), float64(time.Second), "nodes show whole seconds")
		require.InDelta(t, 2, holder.Ratio, 0.5)
		require.Equal(t, holder.Node, waiter.Ahead)
		require.Equal(t, holder.Owner.String(), waiter.Behind)
		require.Zero(t, waiter.Ratio)

		require.NoError(t, held.Unlock())
		require.NoError(t, (<-waits).Unlock())
		time.Sleep(time.Second)
		o = latest().Objects[0]
		require.Equal(t, "free", o.State)
		require.Equal(t, "lock", o.Kind)
		require.Equal(t, 4, o.Usual.Holds, "the last one ended before it could be seen")
		once, err := (&Survey{Session: a, Root: "/"}).Once(t.Context())
		require.NoError(t, err)
		require.Empty(t, once.Objects, "nothing shows what an empty directory was")
		srv.DeleteAll("/x/a")
		time.Sleep(30 * time.Second)
		require.Equal(t, "free", latest().Objects[0].State)
		srv.Create("/y", nil, 0, 0)
		time.Sleep(lingers)
		srv.Create("/z", nil, 0, 0)
		time.Sleep(time.Second)
		require.Empty(t, latest().Objects)
	})
}

func TestGrantsAreCountedAlsoWhereNoLookSeesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a := srv.Session(t)
		latest := live(t, &Survey{Session: srv.Session(t), Root: "/"})
		m := zksync.NewMutex(a, "/lock")
		held := lock(t, srv.Session(t), "/lock") // keeps the path a lock
		require.NoError(t, held.Unlock())
		for range 300 {
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond)
			require.NoError(t, l.Unlock())
		}
		l := lock(t, a, "/lock")
		time.Sleep(10 * time.Millisecond)
		o := latest().Objects[0]
		require.InDelta(t, 100, o.Grants, 5)
		require.NoError(t, l.Unlock())
	})
}

func TestAViewSaysHowOldItIsWhenTheServersDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		l := lock(t, srv.Session(t, zksync.WithTimeout(time.Minute)), "/lock")
		latest := live(t, &Survey{Session: srv.Session(t, zksync.WithTimeout(time.Minute)), Root: "/"})
		time.Sleep(10 * time.Second)
		v := latest()
		require.Empty(t, v.Outage)
		require.WithinDuration(t, time.Now(), v.At, beat)

		thaw := srv.Freeze()
		frozen := time.Now()
		time.Sleep(10 * time.Second)
		v = latest()
		require.Equal(t, "the servers do not answer", v.Outage)
		require.WithinDuration(t, frozen, v.At, beat)
		require.Len(t, v.Objects, 1)
		require.InDelta(t, 20*time.Second, time.Duration(v.Objects[0].Entries[0].For), float64(time.Second))
		thaw()
		time.Sleep(3 * time.Second)
		require.Empty(t, latest().Outage)
		require.WithinDuration(t, time.Now(), latest().At, beat)

		allow := srv.Refuse()
		srv.Disconnect(srv.Sessions()[1].ID)
		time.Sleep(5 * time.Second)
		require.Equal(t, "no connection to the servers", latest().Outage)
		allow()
		time.Sleep(10 * time.Second)
		require.Empty(t, latest().Outage)
		require.NoError(t, l.Unlock())
	})
}

func TestAViewSaysWhatItCannotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a := srv.Session(t)
		mine := zk.DigestACL(zk.PermAll, "user", "secret")
		owner := srv.Session(t, zksync.WithAuth("digest", []byte("user:secret")), zksync.WithACL(mine...))
		secret, open := lock(t, owner, "/secret"), lock(t, a, "/open")
		s := &Survey{Session: srv.Session(t), Root: "/"}
		v, err := s.Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"/secret"}, v.Denied)
		require.Len(t, v.Objects, 1)

		none, err := (&Survey{Session: s.Session, Root: "/none"}).Once(t.Context())
		require.NoError(t, err)
		require.Empty(t, none.Objects)
		require.NoError(t, secret.Unlock())
		require.NoError(t, open.Unlock())
	})
}

func TestAProbablyDeadHolderIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a := srv.Session(t)
		l := lock(t, a, "/lock")
		s := &Survey{Session: srv.Session(t), Root: "/", Servers: func(context.Context) *servers.Report {
			return &servers.Report{Clients: map[int64]servers.Client{
				a.ID(): {Connected: true, HeardMS: 6000, TimeoutMS: 9000, ExpiresInMS: -1},
			}}
		}}
		v, err := s.Once(t.Context())
		require.NoError(t, err)
		e := v.Objects[0].Entries[0]
		require.Equal(t, "", e.Heard)
		require.False(t, e.Dead)
		s.Servers = func(context.Context) *servers.Report {
			return &servers.Report{Clients: map[int64]servers.Client{
				a.ID(): {Connected: true, HeardMS: 7000, TimeoutMS: 9000, ExpiresInMS: -1},
			}}
		}
		v, err = s.Once(t.Context())
		require.NoError(t, err)
		e = v.Objects[0].Entries[0]
		require.Equal(t, "last heard 7 s ago: free in at most 2 s", e.Heard)
		require.True(t, e.Dead)
		require.NoError(t, l.Unlock())
	})
}

func TestAViewShowsDeadlocksAndWhatIsStuckBehindThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a, b, c := srv.Session(t), srv.Session(t), srv.Session(t)
		ha, hb := lock(t, a, "/a"), lock(t, b, "/b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		wait := func(s *zksync.Session, path string) {
			all.Go(func() { _, _ = zksync.NewMutex(s, path).LockContext(ctx) })
			synctest.Wait()
			time.Sleep(time.Second)
		}
		wait(a, "/b")
		s := &Survey{Session: srv.Session(t), Root: "/"}
		v, err := s.Once(t.Context())
		require.NoError(t, err)
		require.Empty(t, v.Cycles)
		wait(b, "/a")
		wait(c, "/a")
		v, err = s.Once(t.Context())
		require.NoError(t, err)
		require.Len(t, v.Cycles, 1)
		cycle := v.Cycles[0]
		require.False(t, cycle.Certain, "a session may hold in one goroutine and wait in another")
		require.Len(t, cycle.Steps, 2)
		require.Equal(t, "/a", cycle.Steps[0].Path, "the newest wait")
		require.Equal(t, "/b", cycle.Steps[1].Path)
		require.Contains(t, cycle.Text, "waits for /a since 2s")
		for _, o := range v.Objects {
			for i, e := range o.Entries {
				require.Equal(t, i > 0, e.Stuck, "%s %d", o.Path, i)
			}
		}
		cancel()
		all.Wait()
		require.NoError(t, ha.Unlock())
		require.NoError(t, hb.Unlock())
	})
}

// A cycle of entries that never existed at the same instant is none.
func TestACycleMustBeSeenTwice(t *testing.T) {
	entry := func(session, state, node string) tree.Row {
		return tree.Row{Kind: "lock", State: zksync.Standing(state), Session: session, Node: node, Token: ""}
	}
	seen := []*tree.Object{
		{Path: "/a", Queue: true, Entries: []tree.Row{entry("0x1", "held", "/a/1"), entry("0x2", "waiting", "/a/2")}},
		{Path: "/b", Queue: true, Entries: []tree.Row{entry("0x2", "held", "/b/1"), entry("0x1", "waiting", "/b/2")}},
	}
	s := &Survey{Root: "/", seen: seen, at: time.Now()}
	require.Len(t, cyclesAmong(seen), 1)
	v := &View{Objects: []*Object{withEntries(seen[0]), withEntries(seen[1])}}
	v.findCycles(time.Now(), func(key string) bool { return s.cycles[key] })
	require.Empty(t, v.Cycles)
	require.False(t, v.Objects[0].Entries[1].Stuck)
	s.cycles = cyclesAmong(seen)
	v.findCycles(time.Now(), func(key string) bool { return s.cycles[key] })
	require.Len(t, v.Cycles, 1)
	seen[1].Entries[1].Node = "/b/3"
	require.NotEqual(t, s.cycles, cyclesAmong(seen))
}
