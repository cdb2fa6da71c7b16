package mutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// locals are goroutines of one process that lock one object again and again.
type locals struct {
	mu    sync.Mutex
	holds []*zksync.Lease
	over  bool
	all   sync.WaitGroup
}

// use has n goroutines lock m and hold it for as long as hold, until end.
func use(m *zksync.Mutex, n int, hold time.Duration) *locals {
	u := &locals{}
	for range n {
		u.all.Go(func() {
			for !u.ended() {
				l, err := m.LockContext(context.Background())
				if err != nil {
					return
				}
				u.mu.Lock()
				u.holds = append(u.holds, l)
				u.mu.Unlock()
				time.Sleep(hold)
				_ = l.Unlock()
			}
		})
	}
	return u
}

func (u *locals) ended() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.over
}

func (u *locals) end() {
	u.mu.Lock()
	u.over = true
	u.mu.Unlock()
	u.all.Wait()
}

// held is how many holds there were, and of how many nodes.
func (u *locals) held() (holds, nodes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := ""
	for _, l := range u.holds {
		if l.Node() != last {
			last = l.Node()
			nodes++
		}
	}
	return len(u.holds), nodes
}

// calm is a session without heartbeats.
func calm(v *proving.Env) *zksync.Session { return v.Session(zksync.WithTimeout(time.Hour)) }

func TestASecondOfLocalUseIsOneRequest(t *testing.T) {
	for name, opts := range map[string][]zksync.Option{
		"default": nil, "a small bound": {zksync.WithHandover(1)}, "a lock delay": {zksync.WithLockDelay(time.Minute)}, "lingers": {zksync.WithLinger(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := calm(v)
				m := zksync.NewMutex(s, proving.LockPath, opts...)
				l := v.Lock(m)
				first := l.Node()
				time.Sleep(time.Second) // its node is watched by now
				u := use(m, 8, 100*time.Microsecond)
				v.Costs(1, func() {
					require.NoError(t, l.Unlock())
					time.Sleep(time.Second)
				}, "the watch of the directory")
				require.Equal(t, 1, v.Server.RequestsOf(s.ID(), zktest.GetChildren))
				u.end()
				holds, nodes := u.held()
				require.Equal(t, 1, nodes)
				require.Equal(t, first, l.Node())
				require.GreaterOrEqual(t, holds, 10_000)
				if name != "lingers" {
					v.Queued(proving.LockPath, 0)
					require.Zero(t, v.Server.Watches())
				}
			})
		})
	}
}

// newcomers come to the queue of proving.LockPath. Each says when it has the lock, and then gives it up.
var newcomers = map[string]func(v *proving.Env, local *zksync.Session) (granted func() time.Time){
	"another session": func(v *proving.Env, _ *zksync.Session) func() time.Time { return comes(v, v.Session()) },
	"another object":  comes,
	"another library": func(v *proving.Env, _ *zksync.Session) func() time.Time {
		conn := v.Server.Connect(v.T, time.Minute)
		node, err := conn.CreateProtectedEphemeralSequential(proving.LockPath+"/lock-", nil, zk.WorldACL(zk.PermAll))
		require.NoError(v.T, err)
		return func() time.Time {
			v.Server.Wait(v.T, "the turn of the stranger", func() bool {
				return len(v.Server.Children(proving.LockPath)) > 0 && first(v) == node
			})
			at := time.Now()
			require.NoError(v.T, conn.Delete(node, -1))
			return at
		}
	},
}

func comes(v *proving.Env, s *zksync.Session) func() time.Time {
	a := proving.Begin(context.Background(), zksync.NewMutex(s, proving.LockPath))
	return func() time.Time {
		require.NoError(v.T, v.Granted(a).Unlock())
		return a.At
	}
}

// first is the oldest entry.
func first(v *proving.Env) (oldest string) {
	czxid := int64(0)
	for _, name := range v.Server.Children(proving.LockPath) {
		if n, ok := v.Server.Node(proving.LockPath + "/" + name); ok && (oldest == "" || n.Stat.Czxid < czxid) {
			oldest, czxid = proving.LockPath+"/"+name, n.Stat.Czxid
		}
	}
	return oldest
}

// A contender that comes while a process hands over without a bound gets the lock within the bound, counted from the moment when
// the process is notified. After that the process goes on as before.
func TestAStrangerIsServedWithinTheBoundFromTheEventOn(t *testing.T) {
	for name, come := range newcomers {
		for _, c := range []struct{ hold, late, want time.Duration }{
			{100 * time.Microsecond, 0, 3250 * time.Microsecond}, // 32 hand-overs, and the rest of a hold
			{time.Millisecond, 0, 10500 * time.Microsecond},      // 10 ms, and the rest of a hold
			{100 * time.Microsecond, 30 * time.Millisecond, 33250 * time.Microsecond},
		} {
			if name == "another object" && c.late > 0 {
				continue // its own answers are late, too
			}
			t.Run(name, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s := v.Session()
					u := use(zksync.NewMutex(s, proving.LockPath), 4, c.hold)
					time.Sleep(100*time.Millisecond + c.hold/2)
					_, nodes := u.held()
					require.Equal(t, 1, nodes)
					heal := v.Server.Delay(s.ID(), 0, c.late)
					start := time.Now()
					granted := come(v, s)
					require.Equal(t, c.want, granted().Sub(start))
					heal()
					time.Sleep(100 * time.Millisecond)
					u.end()
					_, nodes = u.held()
					require.Equal(t, 3, nodes, "one behind the stranger, and one that was alone when it was made")
				})
			})
		}
	}
}

// Without a connection nothing is known of others: the bound counts from the end of the connection.
func TestTheBoundCountsFromTheLossOfTheConnectionOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		u := use(zksync.NewMutex(s, proving.LockPath), 4, 100*time.Microsecond)
		time.Sleep(time.Second + 50*time.Microsecond)
		before, nodes := u.held()
		require.Equal(t, 1, nodes)
		allow := v.Server.Refuse()
		v.Server.Disconnect(s.ID())
		stranger := v.Server.Create(proving.LockPath+"/_c_5f3b5d1c-6c0e-4f4e-9b4a-111111111111-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, other.ID())
		time.Sleep(time.Second)
		after, nodes := u.held()
		require.Equal(t, 32, after-before)
		require.Equal(t, 1, nodes)
		allow()
		v.Server.Wait(t, "the turn of the stranger", func() bool { return first(v) == stranger })
		v.Server.Delete(stranger)
		time.Sleep(time.Second)
		u.end()
		last, _ := u.held()
		require.Greater(t, last, after+5000)
	})
}

// What may happen while the only request of local use is on its way. Nobody holds then.
func TestAnAnswerThatIsLate(t *testing.T) {
	const hold, late = 20 * time.Millisecond, time.Second // a hold is longer than the bound
	ask := func(s *zksync.Session) *zktest.Rule {
		return zktest.On(zktest.GetChildren, proving.LockPath).Of(s.ID())
	}
	for name, c := range map[string]struct {
		rule     func(*zktest.Rule) *zktest.Rule
		stranger bool          // comes while the request is on its way
		want     time.Duration // when the stranger is granted at the latest, from the request on
		nodes    int           // of the local holds until then
	}{
		"nobody comes":                {func(r *zktest.Rule) *zktest.Rule { return r.DelayReply(late) }, false, 0, 1},
		"the request is late":         {func(r *zktest.Rule) *zktest.Rule { return r.Delay(late) }, true, late, 1},
		"the answer is late":          {func(r *zktest.Rule) *zktest.Rule { return r.DelayReply(late) }, true, late + hold, 1},
		"the servers let nobody read": {func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeNoAuth) }, false, 0, 3},
		"the request is lost":         {func(r *zktest.Rule) *zktest.Rule { return r.LoseRequest() }, false, 0, 3},
		"the answer is lost":          {func(r *zktest.Rule) *zktest.Rule { return r.LoseReply() }, false, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, other := v.Session(), v.Mutexes(1)[0]
				m := zksync.NewMutex(s, proving.LockPath)
				require.NoError(t, v.Lock(m).Unlock())
				v.Server.Intercept(c.rule(ask(s)).Times(2))
				u := use(m, 2, hold)
				time.Sleep(hold + late/2)
				if c.stranger {
					start := time.Now().Add(-late / 2)
					holds, _ := u.held()
					require.Equal(t, 1, holds)
					a := proving.Begin(context.Background(), other)
					require.NoError(t, v.Granted(a).Unlock())
					require.GreaterOrEqual(t, a.At.Sub(start), late)
					require.LessOrEqual(t, a.At.Sub(start), c.want)
				} else {
					time.Sleep(10 * late)
				}
				_, nodes := u.held()
				require.Equal(t, c.nodes, nodes)
				u.end()
				v.Queued(proving.LockPath, 0)
				require.Zero(t, v.Server.Watches())
			})
		})
	}
}

// Nothing stays of a goroutine that waits for the answer when it gives up, or when its session is closed.
func TestAWaitForTheAnswerThatEnds(t *testing.T) {
	for name, end := range map[string]func(cancel func(), s *zksync.Session) error{
		"cancelled": func(cancel func(), _ *zksync.Session) error { cancel(); return context.Canceled },
		"closed":    func(_ func(), s *zksync.Session) error { _ = s.Close(); return zksync.ErrClosed },
		"expired":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, err := v.Connect(t.Context())
				require.NoError(t, err)
				m := zksync.NewMutex(s, proving.LockPath)
				l := v.Lock(m)
				before := v.Goroutines()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				next := proving.Begin(ctx, m)
				time.Sleep(20 * time.Millisecond)
				v.Server.Intercept(zktest.On(zktest.GetChildren, proving.LockPath).Times(1).Delay(3 * time.Second))
				require.NoError(t, l.Unlock())
				time.Sleep(time.Second)
				require.True(t, next.Pending())
				if end == nil {
					v.Server.Expire(s.ID())
					require.NotEqual(t, l.Node(), v.Granted(next).Node())
					require.NoError(t, next.Lease.Unlock())
				} else {
					start := time.Now()
					want := end(cancel, s)
					require.ErrorIs(t, v.Failed(next), want)
					require.LessOrEqual(t, next.At.Sub(start), 100*time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				v.Queued(proving.LockPath, 0)
				require.Zero(t, v.Server.Watches())
				if end != nil {
					v.GoroutinesBack(before)
				}
				require.NoError(t, s.Close())
			})
		})
	}
}

// A request to give the lock up ends the hand-overs within the bound, also if no holder listens: the next hold has not been asked.
func TestARequestToGiveUpEndsTheHandovers(t *testing.T) {
	for name, after := range map[string]time.Duration{"after the answer": time.Second, "before the first hand-over": 0} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				other := v.Session()
				u := use(zksync.NewMutex(v.Session(), proving.LockPath), 2, 2*time.Millisecond)
				time.Sleep(after + time.Millisecond)
				_, nodes := u.held()
				require.Equal(t, 1, nodes)
				require.NoError(t, zksync.Revoke(t.Context(), other, contender(v, other)))
				time.Sleep(15 * time.Millisecond)
				_, nodes = u.held()
				require.Equal(t, 2, nodes)
				u.end()
				v.Queued(proving.LockPath, 0)
			})
		})
	}
}
