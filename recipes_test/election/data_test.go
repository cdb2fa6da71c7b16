package election_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestALeaderChangesItsData(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 3)
		require.ErrorIs(t, es[0].SetData(t.Context(), nil), zksync.ErrNotAcquired)
		l := v.Get(es[0].Campaign)
		next := proving.Call(context.Background(), es[1].Campaign)
		v.Settled(proving.ElectionPath, 2)
		before, err := es[2].Leader(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, es[1].SetData(t.Context(), []byte("x")), zksync.ErrNotAcquired, "it waits")
		for _, data := range []string{"10.0.0.8:80", "", "\x00\xff", "10.0.0.9:80"} {
			require.NoError(t, es[0].SetData(t.Context(), []byte(data)))
			v.Flush()
			c, err := es[2].Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, data, string(c.Data))
			before.Data, c.Data = nil, nil
			require.Equal(t, before, c, "nothing else has changed")
		}
		require.True(t, l.Valid())
		require.True(t, next.Pending())
		list, err := es[1].Candidates(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, []byte{1, 0xff}, list[1].Data)

		require.NoError(t, l.Unlock())
		require.ErrorIs(t, es[0].SetData(t.Context(), []byte("late")), zksync.ErrReleased)
		require.NoError(t, v.Granted(next).Unlock())
		l = v.Get(es[0].Campaign)
		c, err := es[0].Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "10.0.0.9:80", string(c.Data), "the next candidacy begins with it")
		require.NoError(t, l.Unlock())
	})
}

// The next in line would take a change of a sealed node for a release. So nobody is granted, however many wait.
func TestChangedDataAreNoRelease(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 6)
		var held *zksync.Lease
		for range 3 {
			var line []*proving.Attempt
			for i, e := range es {
				line = append(line, proving.Call(context.Background(), e.Campaign))
				v.Queued(proving.ElectionPath, i+1)
			}
			for i, a := range line {
				held = v.Granted(a)
				for _, name := range v.Children(proving.ElectionPath) {
					require.False(t, queue.Sealed(name))
				}
				require.NoError(t, es[i].SetData(t.Context(), []byte{byte(i)}))
				v.Quiet()
				require.True(t, i == len(line)-1 || line[i+1].Pending(), "two lead")
				require.NoError(t, held.Err())
				require.NoError(t, held.Unlock())
			}
		}
	})
}

func TestObserversSeeChangedData(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		e := candidate(v, v.Session(), 0)
		watcher := candidate(v, v.Session(), 9)
		seen := make(chan string, 100)
		ctx, stop := context.WithCancel(context.Background())
		var watching sync.WaitGroup
		watching.Go(func() {
			for c, err := range watcher.Observe(ctx) {
				if err == nil {
					seen <- string(c.Data)
				}
			}
		})
		v.Quiet()
		l := v.Get(e.Campaign)
		require.Equal(t, "\x00\xff", <-seen)
		for _, data := range []string{"a", "b", "c"} {
			require.NoError(t, e.SetData(t.Context(), []byte(data)))
			require.Equal(t, data, <-seen)
			v.Quiet() // the observer watches again
		}
		require.NoError(t, e.SetData(t.Context(), []byte("c")))
		v.Quiet()
		require.Empty(t, seen, "nothing has changed")
		stop()
		watching.Wait()
		require.NoError(t, l.Unlock())
	})
}

func TestWhatChangedDataCost(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		a, b := candidate(v, proving.Calm(v), 0), candidate(v, proving.Calm(v), 1)
		l := v.Get(a.Campaign)
		v.Costs(2, func() { require.NoError(t, a.SetData(t.Context(), []byte("x"))) })
		next := proving.Call(context.Background(), b.Campaign)
		v.Settled(proving.ElectionPath, 2)
		v.Costs(3, func() { require.NoError(t, a.SetData(t.Context(), []byte("y"))) }, "the candidate behind it watches again")
		v.Costs(1, func() {
			require.NoError(t, l.Unlock())
			v.Granted(next)
		}, "its departure is the grant as before")
		require.NoError(t, next.Lease.Unlock())
	})
}

func TestDataThatDoNotFitAreRefusedBeforeTheyAreSent(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		e := candidate(v, v.Session(), 0)
		l := v.Get(e.Campaign)
		require.NoError(t, e.SetData(t.Context(), bytes.Repeat([]byte("x"), 700_000)))
		require.ErrorIs(t, e.SetData(t.Context(), bytes.Repeat([]byte("x"), 800_000)), zksync.ErrMisuse)
		require.NoError(t, l.Err())
		require.NoError(t, l.Unlock())
	})
}

func TestSetDataHasItsBounds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		e := candidate(v, s, 0)
		l := v.Get(e.Campaign)
		thaw := v.Server.Freeze()
		ctx, start := proving.Soon(t)
		require.ErrorIs(t, e.SetData(ctx, []byte("x")), context.DeadlineExceeded)
		v.Within(start, proving.Deadline+50*time.Millisecond, "SetData")
		require.ErrorIs(t, e.SetData(context.Background(), []byte("x")), zksync.ErrLost)
		<-l.Done()
		require.LessOrEqual(t, time.Since(start), s.Timeout())
		thaw()
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		l = v.Get(e.Campaign)
		v.Server.Delete(l.Node())
		require.ErrorIs(t, e.SetData(context.Background(), []byte("x")), zksync.ErrLost)
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.NoError(t, s.Close())
		require.ErrorIs(t, e.SetData(context.Background(), nil), zksync.ErrClosed)
		bad := zkelection.New(nil, proving.ElectionPath, zkelection.Candidate{})
		require.ErrorIs(t, bad.SetData(context.Background(), nil), zksync.ErrMisuse)
	})
}

// A foreign writer, such as Curator's Revoker, may write to a node that is not sealed.
func TestSetDataRepairsWhatSomebodyElseWrote(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		e := candidate(v, v.Session(), 0)
		l := v.Get(e.Campaign)
		_, err := v.Session().Conn().Set(v.Chroot+l.Node(), []byte("__REVOKE__"), -1)
		require.NoError(t, err)
		require.NoError(t, e.SetData(t.Context(), []byte("x")))
		c, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "c0", c.ID)
		require.Equal(t, "x", string(c.Data))
		require.NoError(t, l.Unlock())
	})
}

func TestWithEveryFaultTheDataAreSetOnce(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		es := elections(v, 2)
		l := v.Get(es[0].Campaign)
		next := proving.Call(context.Background(), es[1].Campaign)
		return func(name string) {
			require.NoError(t, es[0].SetData(context.Background(), []byte("a")), name)
			require.NoError(t, es[0].SetData(context.Background(), []byte("b")), name)
			n, _ := v.Server.Node(l.Node())
			require.EqualValues(t, 2, n.Stat.Version, name)
			c, err := es[0].Leader(context.Background())
			require.NoError(t, err, name)
			require.Equal(t, "b", string(c.Data), name)
			require.True(t, next.Pending(), name)
			require.NoError(t, l.Unlock(), name)
			require.NoError(t, v.Granted(next).Unlock(), name)
			v.Later()
			require.Empty(t, v.Children(proving.ElectionPath), name)
		}
	})
}

// A process that starts again with its session file ends the session of the one before it at once, and with it the
// candidacy. If nobody else waits it leads again at once. Otherwise the next candidate leads at once, and it queues behind.
func TestALeaderThatRestartsWithItsSessionFileResumes(t *testing.T) {
	for _, waits := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			dir := t.TempDir()
			var dead atomic.Bool
			s := v.Session(zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(30*time.Second),
				zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					if dead.Load() {
						return nil, net.ErrClosed
					}
					return v.Server.DialContext(ctx, network, address)
				}))
			l := v.Get(candidate(v, s, 0).Campaign)
			var next *proving.Attempt
			if waits {
				next = proving.Call(context.Background(), candidate(v, v.Session(), 1).Campaign)
			}
			v.Quiet()
			dead.Store(true) // it has died, and the servers would notice after half a minute
			v.Disconnect(s)
			left, err := os.ReadFile(dir + "/first")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(dir+"/second", left, 0o600))
			start := time.Now()
			again := candidate(v, v.Session(zksync.WithSessionFile(dir+"/second")), 0)
			if waits {
				other := v.Granted(next)
				v.Within(start, time.Second, "the other leads")
				require.NoError(t, other.Unlock())
			}
			after := v.Get(again.Campaign)
			v.Within(start, time.Second, "it leads again")
			require.Positive(t, after.Token().Compare(l.Token()))
			require.NoError(t, again.SetData(t.Context(), []byte("again")))
			require.NoError(t, after.Unlock())
		})
	}
}

func TestAcceptance157AnElectionHasADelayToo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		delay := v.Span(15*time.Second, 3*time.Second)
		open := func(s *zksync.Session, opts ...zksync.Option) *zkelection.Election {
			opts = append(opts, zksync.WithLockDelay(delay))
			return zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: "x"}, opts...)
		}
		s, err := v.Connect(t.Context())
		require.NoError(t, err)
		v.Get(open(s).Campaign)
		next := proving.Call(context.Background(), open(v.Session()).Campaign)
		v.Settled(proving.ElectionPath, 3)
		start := time.Now()
		require.NoError(t, s.Close())
		l := v.Granted(next)
		v.AtOnce(start, "the grant after Close")
		require.NoError(t, l.Unlock())

		s = v.Session()
		l = v.Get(open(s).Campaign)
		told := l.Done()
		e := open(v.Session())
		next = proving.Call(context.Background(), e.Campaign)
		v.Settled(proving.ElectionPath, 3)
		start = time.Now()
		v.Expire(s)
		v.Awaits(told, "the leader to be told")
		_, err = e.TryCampaign(t.Context())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		l = v.Granted(next)
		v.Took(start, delay, "the grant after a loss")
		require.NoError(t, l.Unlock())

		l = v.Get(open(v.Session(), zksync.WithMaxHold(time.Second)).Campaign)
		v.Awaits(l.Done(), "the end of the bound")
		start = time.Now()
		require.NoError(t, v.Get(e.Campaign).Unlock())
		v.Took(start, delay, "the grant after the bound")
		v.Left(proving.ElectionPath, 0, "released")
	})
}
