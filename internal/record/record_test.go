package record_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

var acl = zk.WorldACL(zk.PermAll)

// alone runs f with a server and the connections of two sessions to it.
func alone(t *testing.T, f func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, opts...)
		epoch := func() *zkconn.Epoch { return proving.Epoch(t, srv.Session(t, zksync.WithTimeout(10*time.Second))) }
		srv.Create("/r", nil, 0, 0)
		f(t, srv, epoch(), epoch())
	})
}

func TestATransactionWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	for name, lose := range map[string]*zktest.Rule{"answer": zktest.On(zktest.Multi, "/r/n").LoseReply(), "request": zktest.On(zktest.Multi, "/r/n").LoseRequest()} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
				srv.Intercept(lose.Nth(1))
				_, err := node.RepeatTransaction(t.Context(), a, &zk.CreateRequest{Path: "/r/n", Acl: acl}, &zk.SetDataRequest{Path: "/r", Version: 0})
				if name == "answer" {
					require.True(t, record.RefusedAt(err, 0, zk.ErrNodeExists), "%v", err)
					require.True(t, record.Conflict(err))
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, []string{"n"}, srv.Children("/r"))
				_, err = node.RepeatTransaction(t.Context(), a, &zk.SetDataRequest{Path: "/r", Version: 1}, &zk.SetDataRequest{Path: "/r", Version: 1})
				require.True(t, record.RefusedAt(err, 1, zk.ErrBadVersion), "it was made once: %v", err)
			})
		})
	}
}

// seats are terms of a record.
type seats struct {
	Seats int `json:"seats"`
	Taken int `json:"taken,omitempty"`
}

func seating(n int) *record.Terms[seats] {
	return &record.Terms[seats]{
		Base: "/r/hall/seats", ACL: acl, Type: "hall", Keys: []string{"seats"},
		First: func() (seats, []string) { return seats{Seats: n}, []string{"/r/hall/seats/queue"} },
		Check: func(s seats) error {
			if s.Seats != n {
				return errors.New("another number")
			}
			return nil
		},
	}
}

func TestWhoComesFirstMakesTheTermsAndTheOthersReadThem(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
		one, two := seating(3), seating(3)
		v, err := one.ReadOrMake(t.Context(), a)
		require.NoError(t, err)
		require.True(t, v.New)
		require.Equal(t, []string{"queue"}, srv.Children("/r/hall/seats"))
		v, err = two.Latest(t.Context(), b)
		require.NoError(t, err)
		require.False(t, v.New)
		require.Equal(t, seats{Seats: 3}, v.T)
		_, err = seating(4).ReadOrMake(t.Context(), b)
		require.ErrorContains(t, err, "another number")

		_, err = node.RepeatTransaction(t.Context(), b, &zk.SetDataRequest{Path: one.Base, Data: record.Encode(seats{3, 1}), Version: v.Number})
		require.NoError(t, err)
		old, err := one.Known(t.Context(), a)
		require.NoError(t, err)
		require.Zero(t, old.T.Taken, "nobody told")
		one.Became(v.Number+1, record.Version[seats]{T: seats{3, 9}})
		one.Became(v.Number, record.Version[seats]{T: seats{3, 1}, Number: v.Number + 1})
		now, err := one.Known(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, 1, now.T.Taken, "that is what became of what it knew")

		for _, data := range []string{"", "7", `{"taken":1}`, `{"seats":3,"color":"red"}`} {
			srv.Set(one.Base, []byte(data))
			_, err = two.Latest(t.Context(), b)
			require.ErrorContains(t, err, "the data of the node are not those of a hall; use another path", data)
		}
	})
}

func TestAWaitForTheEndOfANodeLooksWhenNothingIsHeard(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		require.NoError(t, record.UntilGone(t.Context(), a, "/r/none", 0, nil))

		srv.Create("/r/n", nil, 0, 0)
		time.AfterFunc(time.Second, func() { srv.Disconnect(a.ID()) })
		time.AfterFunc(2*time.Second, func() { srv.Set("/r/n", []byte("x")) })
		time.AfterFunc(time.Minute, func() { srv.DeleteAll("/r/n") })
		looks, start := 0, time.Now()
		require.NoError(t, record.UntilGone(t.Context(), a, "/r/n", 0, func() error { looks++; return nil }))
		require.Equal(t, time.Minute, time.Since(start).Truncate(time.Second))
		require.Equal(t, 1+1+5, looks, "one after the disconnect, one after the write, one in each session timeout since")
	})
}

func TestWhoWaitsLooksAgainSomeTimeAfterItsSentinelHasLeft(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		srv.Create("/r/end", nil, 0, 0)
		var s record.Sentinel
		for _, pause := range []time.Duration{1, 2, 4} { // longer each time
			srv.Create("/r/party", nil, 0, 0)
			time.AfterFunc(time.Second, func() { srv.DeleteAll("/r/party") })
			start := time.Now()
			path, _, err := s.Wait(t.Context(), a, []string{"/r/end"}, record.Pick("/r", []string{"party"}), time.Minute)
			require.NoError(t, err)
			require.Empty(t, path)
			require.Equal(t, time.Second+pause*record.LookPause, time.Since(start).Truncate(time.Millisecond))
		}
		time.AfterFunc(time.Second, func() { srv.DeleteAll("/r/end") })
		path, news, err := s.Wait(t.Context(), a, []string{"/r/end"}, "", time.Minute)
		require.NoError(t, err)
		require.Equal(t, "/r/end", path)
		require.Equal(t, zkconn.Deleted, news)
	})
}

// What was refused because somebody else was quicker is mostly right the next time.
func TestTheFirstRepeatOfWhatWasRefusedIsAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		var at []time.Duration
		start := time.Now()
		require.NoError(t, record.Insist(t.Context(), a, func() error {
			at = append(at, time.Since(start)/time.Millisecond)
			switch len(at) {
			case 1, 2, 3:
				return node.ErrAgain
			case 4, 5:
				return zkconn.ErrNotSent
			}
			return nil
		}))
		require.Equal(t, []time.Duration{0, 0, 5, 15, 20, 30}, at)
	})
}

// The end may come between the read that made the waiter wait and the watch. Then it looks at once. If nothing has ended, it
// does not look again and again without a pause.
func TestWhoseWaitEndedBeforeItWatchedLooksAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		var s record.Sentinel
		for _, pause := range []time.Duration{0, 5, 10} {
			start := time.Now()
			path, event, err := s.Wait(t.Context(), a, []string{"/r/end"}, "", time.Minute)
			require.NoError(t, err)
			require.Equal(t, "/r/end", path)
			require.Equal(t, zkconn.NotFound, event)
			require.Equal(t, pause*time.Millisecond, time.Since(start).Truncate(time.Millisecond))
		}
	})
}

func TestADeleteByItsMarkSparesASuccessorOfTheSameName(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
		_, err := record.PutMark(t.Context(), a, "/r/n", acl)
		require.ErrorIs(t, err, zk.ErrNoNode)

		srv.Create("/r/n", []byte("first"), 0, 0)
		id, err := record.PutMark(t.Context(), a, "/r/n", acl)
		require.NoError(t, err)
		_, err = record.PutMark(t.Context(), b, "/r/n", acl) // that of another one, who does not go on
		require.NoError(t, err)
		require.NoError(t, record.DeleteMarked(t.Context(), a, "/r/n", id))
		require.Empty(t, srv.Children("/r"))

		srv.Create("/r/n", []byte("second"), 0, 0)
		require.NoError(t, record.DeleteMarked(t.Context(), a, "/r/n", id), "it has gone, which is what was asked for")
		require.Equal(t, []string{"n"}, srv.Children("/r"))
	})
}

// typed is a record whose base node is named by its type.
func typed(path, name string) *record.Terms[seats] {
	t := seating(2)
	t.Base, t.Type = path+"/"+name, name
	t.First = func() (seats, []string) { return seats{Seats: 2}, nil }
	return t
}

func TestAPathBelongsToOneType(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
		_, err := typed("/r/new/m", "zkmap").ReadOrMake(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, []string{"zkmap"}, srv.Children("/r/new/m"))
		_, err = typed("/r/new/m", "zkmap").ReadOrMake(t.Context(), b)
		require.NoError(t, err)

		srv.Create("/r/latch", []byte(`{"total":3}`), 0, 0)
		srv.Create("/r/lock", []byte("of the user"), 0, 0)
		srv.Create("/r/lock/_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f-lock-", nil, zk.FlagSequence, 0)
		for path, found := range map[string]string{"/r/new/m": "zkmap", "/r/latch": "zklatch", "/r/lock": "zksync.Mutex"} {
			for name, ask := range map[string]func() error{
				"make": func() error { _, err := typed(path, "zkqueue").ReadOrMake(t.Context(), b); return err },
				"look": func() error { _, _, err := typed(path, "zkqueue").Ask(t.Context(), b); return err },
			} {
				err := ask()
				require.ErrorIs(t, err, zksync.ErrMisuse, name)
				require.ErrorContains(t, err, "the path is that of a "+found+", not of a zkqueue", name)
			}
		}
		srv.Create("/r/data", []byte("of the user"), 0, 0)
		_, err = typed("/r/data", "zkqueue").ReadOrMake(t.Context(), b)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, `"of the user"`)
		srv.Create("/r/other", nil, 0, 0)
		srv.Create("/r/other/README", nil, 0, 0)
		_, there, err := typed("/r/other", "zkqueue").Ask(t.Context(), b)
		require.NoError(t, err)
		require.False(t, there)
		_, err = typed("/r/other", "zkqueue").ReadOrMake(t.Context(), b)
		require.NoError(t, err, "nodes of the user are in nobody's way")
		kept, _ := srv.Node("/r/other")
		require.Empty(t, kept.Data)
	})
}

// Both have looked before the other one makes its record.
func TestOfTwoTypesThatAreMadeAtOnceOneIsRefused(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
		srv.Create("/r/both", nil, 0, 0)
		held := srv.Intercept(zktest.On(zktest.Multi, "/r/both/*").Hold())
		results := make(chan error, 2)
		for name, e := range map[string]*zkconn.Epoch{"zkmap": a, "zkqueue": b} {
			go func() { _, err := typed("/r/both", name).ReadOrMake(t.Context(), e); results <- err }()
		}
		srv.Wait(t, "both requests", func() bool { return held.Held() == 2 })
		held.Remove()
		held.Release()
		first, second := <-results, <-results
		require.ErrorIs(t, errors.Join(first, second), zksync.ErrMisuse)
		require.True(t, first == nil || second == nil)
		require.Len(t, srv.Children("/r/both"), 1)
	})
}

// One transaction makes the record and the directories above it, whichever of them are missing.
func TestTheFirstUseOfAPathIsOneTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		there, path string
		requests    int
		old         bool // the servers do not know containers
	}{
		// The base node and the path are read, before the transaction.
		"the parent is there":       {"/app", "/app/n", 3, false},
		"at the root":               {"/other", "/n", 3, false},
		"the parent is missing":     {"/other", "/app/n", 4, false},
		"so is its parent":          {"/other", "/x/app/n", 5, false},
		"the path is there":         {"/app/n", "/app/n", 3, false},
		"servers before containers": {"/app", "/app/n", 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			version := "3.8"
			if c.old {
				version = "3.4"
			}
			alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
				for i := range c.there {
					if i > 0 && c.there[i] == '/' {
						srv.Create(c.there[:i], nil, 0, 0)
					}
				}
				srv.Create(c.there, nil, 0, 0)
				before := srv.Requests()
				v, err := typed(c.path, "zkmap").ReadOrMake(t.Context(), a)
				require.NoError(t, err)
				require.True(t, v.New)
				require.Equal(t, c.requests, srv.Requests()-before)
				v, err = typed(c.path, "zkmap").ReadOrMake(t.Context(), b)
				require.NoError(t, err)
				require.False(t, v.New)
				srv.DeleteAll(c.path + "/zkmap")
				time.Sleep(2 * time.Minute)
				_, there := srv.Node(c.path)
				require.Equal(t, c.old || c.there == c.path, there, "it is a container")
			}, zktest.WithVersion(version))
		})
	}
}

func TestOfTwoTypesThatMakeAPathAtTheSameTimeOneIsRefused(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, b *zkconn.Epoch) {
		held := zktest.On(zktest.Multi, "/app/n").Of(a.ID()).Nth(1).Delay(time.Second)
		srv.Create("/app", nil, 0, 0)
		srv.Intercept(held)
		time.AfterFunc(time.Second/2, func() {
			_, err := typed("/app/n", "zkqueue").ReadOrMake(t.Context(), b)
			require.NoError(t, err)
		})
		_, err := typed("/app/n", "zkmap").ReadOrMake(t.Context(), a)
		require.ErrorContains(t, err, "the path is that of a zkqueue, not of a zkmap")
		require.Equal(t, []string{"zkqueue"}, srv.Children("/app/n"))
	})
}
