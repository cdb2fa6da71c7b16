package removal_test

import (
	"context"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/removal"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const at = "/locks/a"

// world runs f with a server and the session that removes.
func world(t *testing.T, f func(t *testing.T, srv *zktest.Server, ops *zksync.Session)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start()
		t.Cleanup(srv.Close)
		f(t, srv, open(t, srv, "alice"))
	})
}

func open(t *testing.T, srv *zktest.Server, name string) *zksync.Session {
	return srv.Session(t, zksync.WithName(name))
}

// hold takes the lock and returns what an onlooker sees of it.
func hold(t *testing.T, get func(context.Context) (*zksync.Lease, error)) (*zksync.Lease, removal.Seen) {
	l, err := get(t.Context())
	require.NoError(t, err)
	return l, removal.Seen{Path: at, Node: path.Base(l.Node()), Token: l.Token().String(), State: zksync.Held}
}

func refused(t *testing.T, err error, nobody bool, says string) {
	t.Helper()
	var r *removal.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, nobody, r.Nobody, r.Error())
	require.Contains(t, r.Error(), says)
	require.False(t, zksync.Ambiguous(err))
}

func TestAHolderIsRemovedAndLearnsWhy(t *testing.T) {
	for name, get := range map[string]func(*zksync.Session) func(context.Context) (*zksync.Lease, error){
		"lock": func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
			return zksync.NewMutex(s, at).LockContext
		},
		"reader": func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
			return zkrwmutex.New(s, at).RLockContext
		},
		"writer": func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
			return zkrwmutex.New(s, at).LockContext
		},
		"candidate": func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
			return zkelection.New(s, at, zkelection.Candidate{ID: "x"}).Campaign
		},
		"permit": func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
			return func(ctx context.Context) (*zksync.Lease, error) {
				return zksemaphore.NewWeighted(s, at, 3).AcquireLease(ctx, 2)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
				s := open(t, srv, "victim")
				l, seen := hold(t, get(s))
				<-time.After(time.Second) // its own node is watched now
				start := time.Now()
				told, err := removal.Remove(t.Context(), ops, seen, "it hangs")
				require.NoError(t, err)
				require.True(t, told)
				require.Zero(t, time.Since(start))
				require.ErrorIs(t, l.Err(), zksync.ErrLost)
				require.Regexp(t, `^zksync: lease lost: removed by \S+ pid \d+ \(alice\): it hangs$`, l.Err().Error())
				_, err = removal.Remove(t.Context(), ops, seen, "")
				refused(t, err, true, at)
			})
		})
	}
}

func TestOnlyWhatWasSeenIsRemoved(t *testing.T) {
	world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
		a, b := open(t, srv, "a"), open(t, srv, "b")
		_, err := removal.Remove(t.Context(), ops, removal.Seen{Path: at, Token: "1-1"}, "")
		refused(t, err, true, "/locks/a does not exist")
		first, seen := hold(t, zksync.NewMutex(a, at).LockContext)
		go func() { _, _ = zksync.NewMutex(b, at).LockContext(t.Context()) }()
		synctest.Wait()
		list, err := zksync.Contenders(t.Context(), ops, at)
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, change := range []func(*removal.Seen){
			func(s *removal.Seen) { s.Token = "" },
			func(s *removal.Seen) { s.Node, s.Token = "", list[1].Token.String() },
			func(s *removal.Seen) { s.Node = path.Base(list[1].Node) },
			func(s *removal.Seen) { s.Node = "nosuch" },
			func(s *removal.Seen) { s.State = zksync.Waiting },
		} {
			other := seen
			change(&other)
			_, err := removal.Remove(t.Context(), ops, other, "")
			refused(t, err, false, "")
		}
		require.NoError(t, first.Err())
		waits := removal.Seen{Path: at, Node: list[1].Node, Token: list[1].Token.String(), State: zksync.Waiting}
		require.NoError(t, first.Unlock())
		synctest.Wait()
		_, err = removal.Remove(t.Context(), ops, waits, "")
		refused(t, err, false, "granted meanwhile")
		_, err = removal.Remove(t.Context(), ops, seen, "")
		refused(t, err, false, "it is gone")
	})
}

// The servers have removed it, and only the answer is missing: also in the next session that is no refusal, and the next holder stays.
func TestALostAnswerIsNoRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		node    string
		expires bool
	}{"by its node": {"named", false}, "the holder": {"", false}, "by its node, in the next session": {"named", true}, "the holder, in the next session": {"", true}} {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
				l, seen := hold(t, zksync.NewMutex(open(t, srv, "a"), at).LockContext)
				<-time.After(time.Second)
				if c.node == "" {
					seen.Node = ""
				}
				next := make(chan *zksync.Lease, 1)
				b := zksync.NewMutex(open(t, srv, "b"), at)
				go func() {
					n, _ := b.LockContext(t.Context())
					next <- n
				}()
				synctest.Wait()
				id := ops.ID()
				srv.Intercept(zktest.On(zktest.Multi, "**").Of(id).Nth(2).LoseReply())
				if c.expires {
					srv.OnCommit(func(txn zktest.Txn) {
						if txn.Session == id && txn.Op == zktest.Multi && txn.Code == 0 {
							go srv.Expire(id)
						}
					})
				}
				_, err := removal.Remove(t.Context(), ops, seen, "it hangs")
				require.NoError(t, err)
				require.ErrorIs(t, l.Err(), zksync.ErrLost)
				require.NoError(t, (<-next).Err())
			})
		})
	}
}

func TestAHolderIsRemovedAlsoIfTheReasonMayNotBeWritten(t *testing.T) {
	world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
		l, seen := hold(t, zksync.NewMutex(open(t, srv, "a"), at).LockContext)
		l.Revoked()
		<-time.After(time.Second)
		for _, name := range srv.Children(at) {
			if name != seen.Node { // the one that a request is written to
				srv.SetACL(at+"/"+name, zk.WorldACL(zk.PermRead)...)
			}
		}
		told, err := removal.Remove(t.Context(), ops, seen, "it hangs")
		require.NoError(t, err)
		require.False(t, told)
		synctest.Wait()
		require.Same(t, zksync.ErrLost, l.Err())
		require.Empty(t, srv.Children(at))
	})
}

func TestSeveralHoldersAreNamed(t *testing.T) {
	world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
		a, b := open(t, srv, "a"), open(t, srv, "b")
		one, seen := hold(t, zkrwmutex.New(a, at).RLockContext)
		two, _ := hold(t, zkrwmutex.New(b, at).RLockContext)
		seen.Node = ""
		_, err := removal.Remove(t.Context(), ops, seen, "")
		refused(t, err, false, path.Base(one.Node()))
		refused(t, err, false, path.Base(two.Node()))
		require.NoError(t, one.Err())
	})
}

func TestWhatNoSessionHoldsIsRefused(t *testing.T) {
	world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
		_, err := zkdurable.NewMutex(ops, at).Lock(t.Context(), "release-42")
		require.NoError(t, err)
		_, err = removal.Remove(t.Context(), ops, removal.Seen{Path: at}, "")
		refused(t, err, false, "unhold /locks/a --break")
		_, err = removal.Remove(t.Context(), ops, removal.Seen{Path: "/locks"}, "")
		refused(t, err, false, "/locks is no lock")
	})
}

// The session that removes lives on, as that of the page does.
func TestAReasonThatNoHolderReadsIsNotLeft(t *testing.T) {
	world(t, func(t *testing.T, srv *zktest.Server, ops *zksync.Session) {
		s := open(t, srv, "victim")
		l, seen := hold(t, zksync.NewMutex(s, at).LockContext)
		<-time.After(time.Second)
		heal := srv.Partition(s.ID())
		told, err := removal.Remove(t.Context(), ops, seen, "it hangs")
		require.NoError(t, err)
		require.False(t, told)
		require.Len(t, srv.Children(at), 1, "a holder that comes back may read it")
		time.Sleep(2 * time.Minute)
		require.Empty(t, srv.Children(at))
		heal()
		<-l.Done()
	})
}
