package writers_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const dir = "/r/w"

var acl = zk.WorldACL(zk.PermAll)

// alone runs f with a server and the connections of two sessions to it.
func alone(t *testing.T, f func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		epoch := func() *zkconn.Epoch { return proving.Epoch(t, srv.Session(t, zksync.WithTimeout(10*time.Second))) }
		srv.Create("/r", nil, 0, 0)
		f(t, srv, epoch(), epoch())
	})
}

func TestAChangeIsAppliedOnceWhateverBecomesOfItsRequest(t *testing.T) {
	for name, c := range map[string]struct {
		rule     *zktest.Rule
		requests int
		silent   bool // the results are lost
	}{
		"nothing happens":      {zktest.On(zktest.Sync, "/none"), 1, false},
		"the answer is lost":   {zktest.On(zktest.Multi, dir+"/*").LoseReply().Nth(1), 2, true},
		"the request is lost":  {zktest.On(zktest.Multi, dir+"/*").LoseRequest().Nth(1), 2, false},
		"the request is twice": {zktest.On(zktest.Multi, dir+"/*").Duplicate().Nth(1), 1, true},
		"both answers are":     {zktest.On(zktest.Multi, dir+"/*").LoseReply().Nth(1).Times(2), 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
				srv.Create(dir, nil, 0, 0)
				ws := writers.Writers{}
				for n := range 3 { // the first change makes the writer's node
					rule := *c.rule
					i := srv.Intercept(&rule)
					before := srv.RequestsBy(zktest.Multi)
					res, err := ws.Apply(t.Context(), a, 0, dir, acl, &zk.SetDataRequest{Path: "/r", Data: []byte{byte(n)}, Version: -1})
					require.NoError(t, err)
					require.Equal(t, c.silent, res == nil)
					if res != nil {
						require.Equal(t, int32(n+1), res[0].Stat.Version)
					}
					require.EqualValues(t, c.requests, srv.RequestsBy(zktest.Multi)-before)
					i.Remove()
					now, _ := srv.Node("/r")
					require.Equal(t, []byte{byte(n)}, now.Data)
					require.Equal(t, int32(n+1), now.Stat.Version)
				}
				require.Len(t, srv.Children(dir), 1)
			})
		})
	}
}

// The change is not sent again, but the outcome is found out.
func TestAChangeOnOneConnectionIsNotSentOnAnother(t *testing.T) {
	for name, c := range map[string]struct {
		rule     *zktest.Rule
		requests int
		applied  bool
	}{
		"nothing happens":      {zktest.On(zktest.Sync, "/none"), 1, true},
		"the answer is lost":   {zktest.On(zktest.Multi, dir+"/*").LoseReply().Nth(1), 2, true},
		"the request is lost":  {zktest.On(zktest.Multi, dir+"/*").LoseRequest().Nth(1), 2, false},
		"both answers are":     {zktest.On(zktest.Multi, dir+"/*").LoseReply().Nth(1).Times(2), 3, true},
		"both requests are":    {zktest.On(zktest.Multi, dir+"/*").LoseRequest().Nth(1).Times(2), 3, false},
		"the request is twice": {zktest.On(zktest.Multi, dir+"/*").Duplicate().Nth(1), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
				srv.Create(dir, nil, 0, 0)
				ws := writers.Writers{}
				for n := range 3 { // the first change makes the writer's node
					rule := *c.rule
					i := srv.Intercept(&rule)
					was, _ := srv.Node("/r")
					before := srv.RequestsBy(zktest.Multi)
					_, err := ws.Apply(t.Context(), a, a.Connection(), dir, acl, &zk.SetDataRequest{Path: "/r", Data: []byte{byte(n)}, Version: -1})
					now, _ := srv.Node("/r")
					if c.applied {
						require.NoError(t, err)
						require.Equal(t, was.Stat.Version+1, now.Stat.Version)
					} else {
						require.Equal(t, writers.ErrMoved, err)
						require.Equal(t, was.Stat.Version, now.Stat.Version)
					}
					require.EqualValues(t, c.requests, srv.RequestsBy(zktest.Multi)-before)
					i.Remove()
				}
				before := srv.RequestsBy(zktest.Multi)
				_, err := ws.Apply(t.Context(), a, a.Connection()+1, dir, acl, &zk.DeleteRequest{Path: "/r"})
				require.Equal(t, writers.ErrMoved, err)
				require.Equal(t, before, srv.RequestsBy(zktest.Multi))
				require.Len(t, srv.Children(dir), 1)
			})
		})
	}
}

// There is no record, and the first request is lost: the second one tells that nothing was changed.
func TestAChangeOfARecordThatIsNotThereIsNoneThoughARequestWasLost(t *testing.T) {
	for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseRequest, zktest.LoseReply, zktest.Duplicate} {
		alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
			srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Op != zktest.Multi || srv.RequestsBy(zktest.Multi) > 1 {
					return zktest.Verdict{}
				}
				return zktest.Verdict{Fate: fate}
			})
			ws := writers.Writers{}
			_, err := ws.Apply(t.Context(), a, 0, dir, acl, &zk.SetDataRequest{Path: "/r", Version: -1})
			require.Equal(t, zk.ErrNoNode, err, "fate %v", fate)
			time.Sleep(time.Minute)
			srv.Create(dir, nil, 0, 0)
			_, err = ws.Apply(t.Context(), a, 0, dir, acl, &zk.SetDataRequest{Path: "/r", Version: -1})
			require.NoError(t, err)
			require.Len(t, srv.Children(dir), 1)
		})
	}
}

// members is alone on three servers, the last of which leads. The first session begins at the first one.
func members(t *testing.T, f func(t *testing.T, e *zktest.Ensemble, a, b *zkconn.Epoch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zktest.RunEnsemble(t, 3, zktest.WithTick(time.Second))
		at := func(i int) *zkconn.Epoch {
			return proving.Epoch(t, e.SessionAt(t, i, zksync.WithTimeout(10*time.Second)))
		}
		e.Server(2).Create("/r", nil, 0, 0)
		e.Server(2).Create(dir, nil, 0, 0)
		f(t, e, at(0), at(1))
	})
}

// The first copy lies in the queue of the server until the reason has passed for which the second one is refused.
func TestARefusedChangeIsNotAppliedLater(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run("first="+strconv.FormatBool(first), func(t *testing.T) {
			members(t, func(t *testing.T, servers *zktest.Ensemble, a, _ *zkconn.Epoch) {
				leader := servers.Server(2)
				ws := writers.Writers{}
				change := func() error {
					_, err := ws.Apply(t.Context(), a, 0, dir, acl, &zk.CreateRequest{Path: "/r/n", Acl: acl})
					return err
				}
				if !first {
					require.NoError(t, change())
					leader.Delete("/r/n")
				}
				late := servers.Intercept(zktest.On(zktest.Multi, "/r/n").Hold().Queued().Nth(1))
				done := make(chan error, 1)
				go func() { done <- change() }()
				synctest.Wait()
				require.Equal(t, 1, late.Held())
				leader.Create("/r/n", nil, 0, 0)
				servers.Disconnect(a.ID())
				require.True(t, record.RefusedAt(<-done, 0, zk.ErrNodeExists))
				leader.Delete("/r/n")
				for servers.At(a.ID()) != 0 {
					servers.Disconnect(a.ID())
					time.Sleep(100 * time.Millisecond)
				}
				late.Release()
				time.Sleep(time.Second)
				require.Equal(t, []string{"w"}, leader.Children("/r"), "the late copy made the node")
			})
		})
	}
}

// The second copy was refused, and before its writer can use up the version, the reason has passed and the first one arrives.
func TestARefusedChangeThatArrivesAtTheLastMomentIsKnownToBeApplied(t *testing.T) {
	members(t, func(t *testing.T, servers *zktest.Ensemble, a, _ *zkconn.Epoch) {
		leader := servers.Server(2)
		ws := writers.Writers{}
		_, err := ws.Apply(t.Context(), a, 0, dir, acl)
		require.NoError(t, err)
		late := servers.Intercept(zktest.On(zktest.Multi, "/r/n").Hold().Queued().Nth(1))
		done := make(chan error, 1)
		go func() {
			_, err := ws.Apply(t.Context(), a, 0, dir, acl, &zk.CreateRequest{Path: "/r/n", Acl: acl})
			done <- err
		}()
		synctest.Wait()
		require.Equal(t, 1, late.Held())
		leader.Create("/r/n", nil, 0, 0)
		held := make(chan struct{})
		servers.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
			if q.Op == zktest.Multi && len(q.Paths) == 1 {
				v.Hold = held // it is to use up the version
			}
			return v
		})
		for moved := false; !moved || servers.At(a.ID()) != 0; moved = true {
			servers.Disconnect(a.ID())
			time.Sleep(100 * time.Millisecond)
		}
		leader.Delete("/r/n")
		late.Release()
		time.Sleep(100 * time.Millisecond)
		close(held)
		require.NoError(t, <-done)
		require.Equal(t, []string{"n", "w"}, leader.Children("/r"))
	})
}

func TestWritersStayForLaterChangesThatComeSoon(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		ws := writers.Writers{}
		_, err := ws.Apply(t.Context(), a, 0, dir, acl)
		require.ErrorIs(t, err, zk.ErrNoNode, "the record makes the directory")
		const dirs = 70
		for i := range dirs {
			srv.Create(dir+strconv.Itoa(i), nil, 0, 0)
		}
		changes := func(from int) {
			for i := from; i < dirs; i++ {
				_, err := ws.Apply(t.Context(), a, 0, dir+strconv.Itoa(i), acl)
				require.NoError(t, err)
			}
			synctest.Wait()
		}
		changes(0)
		before := srv.Requests()
		changes(0)
		require.Equal(t, dirs, srv.Requests()-before, "one each, also if many records are changed in turn")
		time.Sleep(time.Minute)
		changes(6)
		left := 0
		for i := range dirs {
			left += len(srv.Children(dir + strconv.Itoa(i)))
		}
		require.Equal(t, 64, left, "those that were not used for a while are removed")

		last := dir + strconv.Itoa(dirs-1)
		srv.Delete(last + "/" + srv.Children(last)[0]) // externally
		_, err = ws.Apply(t.Context(), a, 0, last, acl, &zk.SetDataRequest{Path: "/r", Version: -1})
		require.NoError(t, err)
		require.Len(t, srv.Children(last), 1)
	})
}

// The end of a session is one transaction with all its ephemeral nodes. Servers that cannot read it do not start again.
func TestASessionHasABoundedNumberOfWriters(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		ws := writers.Writers{}
		const dirs = 1100
		for i := range dirs {
			srv.Create(dir+strconv.Itoa(i), nil, 0, 0)
			_, err := ws.Apply(t.Context(), a, 0, dir+strconv.Itoa(i), acl)
			require.NoError(t, err)
		}
		synctest.Wait()
		left := 0
		for i := range dirs {
			left += len(srv.Children(dir + strconv.Itoa(i)))
		}
		require.Equal(t, 1000, left)
	})
}

func TestAChangeWhoseOutcomeIsNotKnownSaysSo(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
		srv.Create(dir, nil, 0, 0)
		ws := writers.Writers{}
		write := &zk.SetDataRequest{Path: "/r", Data: []byte("written"), Version: -1}

		ctx, cancel := context.WithCancel(t.Context())
		held := srv.Intercept(zktest.On(zktest.Multi, "/r").Hold().Nth(1))
		done := make(chan error)
		go func() { _, err := ws.Apply(ctx, a, 0, dir, acl, write); done <- err }()
		synctest.Wait()
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, errs.Ambiguous(err))
		held.Release()
		time.Sleep(time.Second)
		require.Empty(t, srv.Children(dir), "the writer's node is removed")

		srv.Intercept(zktest.On(zktest.Multi, "/r").LoseReply().Nth(1))
		go func() { _, err := ws.Apply(t.Context(), b, 0, dir, acl, write); done <- err }()
		synctest.Wait()
		srv.Expire(b.ID())
		err = <-done
		require.ErrorIs(t, err, errs.ErrSessionExpired)
		require.True(t, errs.Ambiguous(err))

		_, err = ws.Apply(t.Context(), b, 0, dir, acl, write)
		require.ErrorIs(t, err, zkconn.ErrOver, "nothing was sent")
		require.False(t, errs.Ambiguous(err))
	})
}

// Two sessions write down their changes. Requests are lost, doubled and late in every way, and each change is there as
// often as its maker was told.
func TestChangesThroughRandomFaultsAreThereOnce(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 20
	}
	late := 0
	for seed := range seeds {
		members(t, func(t *testing.T, servers *zktest.Ensemble, a, b *zkconn.Epoch) {
			r := rand.New(rand.NewPCG(uint64(seed), 0))
			var draws sync.Mutex // members decide about requests at the same time
			calm := servers.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
				if q.Op != zktest.Multi {
					return v
				}
				draws.Lock()
				defer draws.Unlock()
				switch r.IntN(8) {
				case 0:
					v.Fate = zktest.LoseReply
				case 1:
					v.Fate = zktest.LoseRequest
				case 2:
					v.Fate = zktest.Duplicate
				case 3, 4:
					late++
					v.Queued, v.Delay = true, time.Duration(r.IntN(3000))*time.Millisecond
					for range 1 + r.IntN(4) { // round the members, perhaps until it is back at this one
						after := time.Duration(r.IntN(2000)) * time.Millisecond
						time.AfterFunc(after, func() { servers.Disconnect(q.Session) })
					}
				}
				return v
			})
			var mu sync.Mutex
			var told []string
			var both sync.WaitGroup
			for i, e := range []*zkconn.Epoch{a, b} {
				both.Go(func() {
					ws := writers.Writers{}
					for n := range 8 {
						id := strconv.Itoa(i) + "." + strconv.Itoa(n)
						// Nothing but the writer keeps this from being applied twice. The first node is the reason for refusals.
						_, err := ws.Apply(t.Context(), e, 0, dir, acl,
							&zk.CreateRequest{Path: "/r/turn", Acl: acl},
							&zk.CreateRequest{Path: "/r/" + id + "-", Acl: acl, Flags: zk.FlagSequence})
						if record.RefusedAt(err, 0, zk.ErrNodeExists) {
							_, err := node.RepeatTransaction(t.Context(), e, &zk.DeleteRequest{Path: "/r/turn", Version: -1})
							assert.True(t, err == nil || record.Conflict(err), "%v", err)
							continue
						}
						assert.NoError(t, err)
						mu.Lock()
						told = append(told, id)
						mu.Unlock()
					}
				})
			}
			both.Wait()
			calm()
			time.Sleep(time.Minute)
			var found []string
			for _, n := range servers.Server(2).Children("/r") {
				if id, _, is := strings.Cut(n, "-"); is {
					found = append(found, id)
				}
			}
			require.ElementsMatch(t, told, found, "seed %d", seed)
			require.NotEmpty(t, told)
		})
	}
	require.Greater(t, late, seeds)
}

// Versions are of 32 bits, and a negative one would say that the writer's node is yet to be made.
func TestAWriterEndsBeforeItsVersionBecomesNegative(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		srv.Create(dir, nil, 0, 0)
		var ws writers.Writers
		change := func() {
			_, err := ws.Apply(t.Context(), a, 0, dir, acl)
			require.NoError(t, err)
			synctest.Wait()
		}
		change()
		require.Len(t, srv.Children(dir), 1)
		ws.Wear(a, dir, math.MaxInt32)
		synctest.Wait()
		require.Empty(t, srv.Children(dir))
		change()
		require.Len(t, srv.Children(dir), 1, "there is a new one")
	})
}

func TestAWriterIsRemovedThoughItsNewestRequestWasNotSent(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		srv.Create(dir, nil, 0, 0)
		writers.AbandonUnsent(t.Context(), a, dir, acl)
		time.Sleep(time.Second)
		require.Empty(t, srv.Children(dir))
	})
}
