package zkgroup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

const groupPath = "/groups/workers"

func ids(ms []zkgroup.Member) []string {
	all := []string{}
	for _, m := range ms {
		all = append(all, m.ID+"="+string(m.Data))
	}
	return all
}

func members(v *proving.Env, g *zkgroup.Group) []string {
	v.T.Helper()
	ms, err := g.Members(context.Background())
	require.NoError(v.T, err)
	return ids(ms)
}

func joins(v *proving.Env, g *zkgroup.Group, id, data string) *zkgroup.Membership {
	v.T.Helper()
	m, err := g.Join(context.Background(), zkgroup.Member{ID: id, Data: []byte(data)})
	require.NoError(v.T, err)
	return m
}

func TestMembersComeChangeAndGo(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		a, b := zkgroup.New(v.Session(), groupPath), zkgroup.New(v.Session(), groupPath)
		require.Empty(t, members(v, a))
		m := joins(v, a, "a", "1")
		n := joins(v, b, "../b%", "2")
		require.Equal(t, []string{"../b%=2", "a=1"}, members(v, a))
		require.NoError(t, m.SetData(t.Context(), []byte("3")))
		require.Equal(t, []string{"../b%=2", "a=3"}, members(v, b))
		require.False(t, proving.IsClosed(m.Lost()))
		require.NoError(t, m.Leave(t.Context()))
		require.NoError(t, m.Leave(t.Context()))
		require.True(t, proving.IsClosed(m.Lost()))
		require.ErrorIs(t, m.SetData(t.Context(), nil), zksync.ErrReleased)
		require.Equal(t, []string{"../b%=2"}, members(v, b))
		require.NoError(t, n.Leave(t.Context()))
		joins(v, b, "a", "again")
		require.Equal(t, []string{"a=again"}, members(v, a))
	})
}

func TestASecondLivingMemberOfAnIDIsRefused(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		a, b := zkgroup.New(s, groupPath), zkgroup.New(v.Session(zksync.WithTimeout(6*time.Second)), groupPath)
		joins(v, a, "a", "1")
		_, err := a.Join(t.Context(), zkgroup.Member{ID: "a"})
		require.ErrorIs(t, err, zksync.ErrMisuse, "in the same session, at once")
		begin := time.Now()
		_, err = b.Join(t.Context(), zkgroup.Member{ID: "a"})
		require.ErrorIs(t, err, zksync.ErrMisuse)
		v.Took(begin, v.Span(22500*time.Millisecond, s.Timeout()*3/2), "one and a half of the longer session timeout")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.Join(ctx, zkgroup.Member{ID: "a"})
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, id := range []string{"", string(make([]byte, 100))} {
			_, err = a.Join(t.Context(), zkgroup.Member{ID: id})
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
	})
}

func TestARestartedProcessJoinsWhenItsOldSessionHasEnded(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		joins(v, zkgroup.New(s, groupPath), "a", "old")
		dies(v, s)
		begin := time.Now()
		joins(v, zkgroup.New(v.Session(), groupPath), "a", "new")
		require.LessOrEqual(t, time.Since(begin), s.Timeout()+time.Second)
	})
}

// dies has a process vanish, as after kill -9: the servers hear nothing of it any more.
func dies(v *proving.Env, s *zksync.Session) {
	v.Partition(s)
	go s.Close()
}

// watcher collects views.
type watcher struct {
	mu    sync.Mutex
	views []zkgroup.View
}

func watches(ctx context.Context, t *testing.T, g *zkgroup.Group) *watcher {
	w := &watcher{}
	go func() {
		for v, err := range g.Watch(ctx) {
			if err != nil {
				return
			}
			w.mu.Lock()
			w.views = append(w.views, v)
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *watcher) take() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.views {
		all = append(all, fmt.Sprint(ids(v.Members), " +", ids(v.Joined), " -", ids(v.Left), " ~", ids(v.Updated)))
	}
	w.views = nil
	return all
}

func TestAcceptance152AFrozenMemberHasLeftForOthersAndIsTold(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		a, b := zkgroup.New(s, groupPath), zkgroup.New(v.Session(), groupPath)
		joins(v, b, "b", "")
		w := watches(t.Context(), t, b)
		v.Quiet()
		require.Equal(t, []string{"[b=] +[b=] -[] ~[]"}, w.take())
		m := joins(v, a, "a", "1")
		v.Quiet()
		require.Equal(t, []string{"[a=1 b=] +[a=1] -[] ~[]"}, w.take())
		require.NoError(t, m.SetData(t.Context(), []byte("2")))
		v.Quiet()
		require.Equal(t, []string{"[a=2 b=] +[] -[] ~[a=2]"}, w.take())

		heal := v.Partition(s)
		lost := m.Lost()
		<-lost
		require.Empty(t, w.take(), "it is told before the others")
		time.Sleep(s.Timeout())
		heal()
		v.Quiet()
		require.Equal(t, []string{"[b=] +[] -[a=2] ~[]", "[a=2 b=] +[a=2] -[] ~[]"}, w.take(), "it joins again in its next session")
		require.False(t, proving.IsClosed(m.Lost()))
		require.True(t, proving.IsClosed(lost))
		require.NoError(t, m.SetData(t.Context(), []byte("3")))
		v.Quiet()
		require.Equal(t, []string{"[a=3 b=] +[] -[] ~[a=3]"}, w.take())
	})
}

func TestAMemberWhoseNodeIsRemovedJoinsAgain(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		g := zkgroup.New(v.Session(), groupPath)
		m := joins(v, g, "a", "1")
		lost := m.Lost()
		v.Remove(groupPath + "/zkgroup/members/a")
		v.Awaits(lost, "the member is told")
		v.Queued(groupPath+"/zkgroup/members", 1)
	})
}

// Nobody tells it then, so it asks.
func TestAMemberThatMayNotReadItsRemovedNodeJoinsAgain(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		joins(v, zkgroup.New(v.Session(), groupPath), "z", "") // makes the directories
		g := zkgroup.New(v.Session(), groupPath, zksync.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		m := joins(v, g, "a", "1")
		lost, start := m.Lost(), time.Now()
		v.Remove(groupPath + "/zkgroup/members/a")
		v.Awaits(lost, "the member is told")
		v.Within(start, 16*time.Second, "a session timeout, and the look")
		v.Queued(groupPath+"/zkgroup/members", 2)
	})
}

func TestAcceptance160APathOfAnotherTypeIsRefused(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		v.Put(groupPath+"/zkmap", "{}")
		g := zkgroup.New(v.Session(), groupPath)
		_, err := g.Join(t.Context(), zkgroup.Member{ID: "a"})
		for _, part := range []string{groupPath, "zkmap", "zkgroup"} {
			require.ErrorContains(t, err, part)
		}
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = g.Members(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		for _, err := range g.Watch(t.Context()) {
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
	})
}

func TestAcceptance141EveryFaultIsInvisibleToTheUserOfAGroup(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		a, b := zkgroup.New(v.Session(), groupPath), zkgroup.New(v.Session(), groupPath)
		return func(story string) {
			m := joins(v, a, "a", "1")
			n := joins(v, b, "b", "2")
			require.NoError(t, m.SetData(t.Context(), []byte("3")), story)
			require.Equal(t, []string{"a=3", "b=2"}, members(v, b), story)
			require.NoError(t, m.Leave(t.Context()), story)
			require.Equal(t, []string{"b=2"}, members(v, b), story)
			require.NoError(t, n.Leave(t.Context()), story)
		}
	})
}

// ledger checks that no item has two owners.
type ledger struct {
	mu    sync.Mutex
	t     *testing.T
	owner map[string]*zksync.Lease
	who   map[string]string
	moves int
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, owner: map[string]*zksync.Lease{}, who: map[string]string{}}
}

// owners are who has run each item last, and how many runs there were.
func (b *ledger) owners() (map[string]string, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.who), b.moves
}

func (b *ledger) run(id string) func(context.Context, string, *zksync.Lease) error {
	return func(ctx context.Context, item string, l *zksync.Lease) error {
		b.mu.Lock()
		if o := b.owner[item]; o != nil && o.Valid() && l.Valid() {
			b.t.Errorf("%s has two owners", item)
		}
		b.owner[item], b.who[item] = l, id
		b.moves++
		b.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
}

// owned is how many items have an owner with a valid lease.
func (b *ledger) owned() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.owner {
		if l.Valid() {
			n++
		}
	}
	return n
}

func items(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("item/", i))
	}
	return all
}

func TestAcceptance153EveryItemHasOneOwnerThroughJoinsKillsAndPartitions(t *testing.T) {
	for seed := range uint64(proving.Rounds(20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			proving.InEachRelease(t, func(t *testing.T, v *proving.Env) { assignsThroughFaults(t, v, seed) })
		})
	}
}

func assignsThroughFaults(t *testing.T, v *proving.Env, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 153))
	book := newLedger(t)
	const workers = 8
	all, timeout := items(64), time.Duration(0)
	quit := make([]func(), workers)
	begin := func(i int) {
		s := v.Session()
		timeout = s.Timeout()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			g := zkgroup.New(s, groupPath)
			m, err := g.Join(ctx, zkgroup.Member{ID: fmt.Sprint("w", i)})
			if err != nil {
				if ctx.Err() == nil && !errors.Is(err, zksync.ErrClosed) {
					t.Errorf("join: %v", err)
				}
				return
			}
			if err := g.Assign(ctx, m, all, book.run(m.ID())); err != nil && !errors.Is(err, zksync.ErrClosed) {
				t.Errorf("assign: %v", err)
			}
		}()
		var heal func()
		quit[i] = func() {
			switch rng.IntN(3) {
			case 0: // it returns
				cancel()
				<-ended
				s.Close()
			case 1: // it is cut off for a while
				heal = v.Partition(s)
				time.Sleep(time.Duration(rng.Int64N(int64(2 * timeout))))
				heal()
				return
			default: // it dies
				dies(v, s)
				cancel()
			}
			quit[i] = nil
		}
	}
	for i := range workers {
		begin(i)
	}
	for range 12 {
		if i := rng.IntN(workers); quit[i] == nil {
			begin(i)
		} else {
			quit[i]()
		}
		time.Sleep(time.Duration(rng.Int64N(int64(timeout))))
	}
	alive := 0
	for _, q := range quit {
		if q != nil {
			alive++
		}
	}
	if alive == 0 {
		begin(0)
	}
	time.Sleep(timeout + time.Second)
	require.Equal(t, len(all), book.owned(), "every item has an owner")
}

func TestAnItemThatIsDoneIsNotRunAgain(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		var mu sync.Mutex
		ran := map[string]int{}
		f := func(_ context.Context, item string, _ *zksync.Lease) error {
			mu.Lock()
			defer mu.Unlock()
			ran[item]++
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan error, 4)
		all := items(16)
		count := func() (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range ran {
				n += c
			}
			return n
		}
		a := zkgroup.New(v.Session(), groupPath)
		ma := joins(v, a, "a", "")
		go func() { ends <- a.Assign(ctx, ma, all, f) }()
		v.Queued(groupPath+"/zkgroup/working", 1)
		v.Awaits(poll(v, func() bool { return count() == len(all) }), "all items are done")
		b := zkgroup.New(v.Session(), groupPath)
		mb := joins(v, b, "b", "")
		go func() { ends <- b.Assign(ctx, mb, append(items(17), "mine"), f) }()
		v.Awaits(poll(v, func() bool { return count() == len(all)+2 }), "what only one list has is run, too")
		require.ErrorIs(t, b.Assign(ctx, mb, all, f), zksync.ErrMisuse, "in an Assign already")
		require.ErrorIs(t, a.Assign(ctx, ma, []string{"x", "x"}, f), zksync.ErrMisuse)
		cancel()
		require.NoError(t, <-ends)
		require.NoError(t, <-ends)
		require.Empty(t, v.Children(groupPath+"/zkgroup/working"))
		require.ElementsMatch(t, []string{"members", "writers", "working", "items"}, v.Children(groupPath+"/zkgroup"), "the round has ended")
		require.Equal(t, len(all)+2, count())
	})
}

// poll is closed when it is so.
func poll(v *proving.Env, is func() bool) <-chan struct{} {
	v.T.Helper()
	done := make(chan struct{})
	go func() {
		for !is() {
			time.Sleep(10 * time.Millisecond)
		}
		close(done)
	}()
	return done
}

func TestWhatAGroupCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		a, b := zkgroup.New(proving.Calm(v), groupPath), zkgroup.New(proving.Calm(v), groupPath)
		joins(v, a, "first", "")
		var m *zkgroup.Membership
		v.Costs(2, func() { m = joins(v, a, "a", "") })
		v.Costs(3, func() { joins(v, b, "b", "") }, "the first use of an object")
		v.Costs(2+2+3, func() { members(v, zkgroup.New(proving.Calm(v), groupPath)) }, "the first use of an object")
		v.Costs(2+3, func() { members(v, b) })
		v.Costs(2, func() { require.NoError(t, m.SetData(t.Context(), []byte("1"))) })
		v.Costs(1, func() { require.NoError(t, m.Leave(t.Context())) })
	})
}

func TestAcceptance141EveryFaultLeavesEachItemDoneOnce(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		a, b := zkgroup.New(v.Session(), groupPath), zkgroup.New(v.Session(), groupPath)
		ma, mb := joins(v, a, "a", ""), joins(v, b, "b", "")
		return func(story string) {
			var mu sync.Mutex
			ran := map[string]int{}
			var all sync.WaitGroup
			all.Add(4)
			f := func(_ context.Context, item string, _ *zksync.Lease) error {
				mu.Lock()
				defer mu.Unlock()
				if ran[item]++; ran[item] == 1 {
					all.Done()
				}
				return nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			ends := make(chan error, 2)
			go func() { ends <- a.Assign(ctx, ma, items(4), f) }()
			go func() { ends <- b.Assign(ctx, mb, items(4), f) }()
			all.Wait()
			cancel()
			require.NoError(t, <-ends, story)
			require.NoError(t, <-ends, story)
			for item, n := range ran {
				require.Equal(t, 1, n, "%s: %s", story, item)
			}
		}
	})
}

// A run finds out by itself that its lease is lost. That moves the item, and does not end Assign.
func TestARunWhoseLeaseIsLostDoesNotEndAssign(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		g := zkgroup.New(v.Session(), groupPath)
		m := joins(v, g, "a", "")
		runs := make(chan error, 10)
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan error, 1)
		var first atomic.Bool
		go func() {
			ends <- g.Assign(ctx, m, []string{"x"}, func(_ context.Context, _ string, l *zksync.Lease) error {
				if first.CompareAndSwap(false, true) {
					v.Remove(l.Node())
				}
				_, err := l.Guard(t.Context(), &zk.CheckVersionRequest{Path: groupPath, Version: -1})
				runs <- err
				return err
			})
		}()
		require.ErrorIs(t, <-runs, zksync.ErrLost)
		require.NoError(t, <-runs, "it runs again")
		v.Quiet()
		cancel()
		require.NoError(t, <-ends)
	})
}
