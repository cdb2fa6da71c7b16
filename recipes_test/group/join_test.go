package zkgroup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const memberPath = groupPath + "/zkgroup/members/a"

// What is on its way of an attempt of this process, or on its way out, is no other member.
func TestJoinWaitsForWhatAnEarlierJoinOfItsSessionLeaves(t *testing.T) {
	for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate} {
		for _, late := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprintf("fate=%v,late=%v", fate, late), func(t *testing.T) {
				proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
					g := zkgroup.New(v.Session(), groupPath)
					held := v.Server.Intercept(zktest.On(zktest.Create, memberPath).Hold().Nth(1))
					ctx, cancel := context.WithCancel(t.Context())
					ends := make(chan error, 1)
					go func() { _, err := g.Join(ctx, zkgroup.Member{ID: "a", Data: []byte("first")}); ends <- err }()
					v.Quiet()
					cancel()
					require.ErrorIs(t, <-ends, context.Canceled)
					time.AfterFunc(late, held.Release)
					m := joins(v, g, "a", "second")
					require.Equal(t, []string{"a=second"}, members(v, g))

					removed := v.Server.Intercept(zktest.On(zktest.Delete, memberPath).Hold().Nth(1))
					short, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					require.ErrorIs(t, m.Leave(short), context.DeadlineExceeded)
					time.AfterFunc(late, removed.Release)
					m = joins(v, g, "a", "third")
					require.Equal(t, []string{"a=third"}, members(v, g))
					_, err := zkgroup.New(v.Session(), groupPath).Join(short, zkgroup.Member{ID: "a"})
					require.Error(t, err)
					_, err = g.Join(t.Context(), zkgroup.Member{ID: "a"})
					require.ErrorIs(t, err, zksync.ErrMisuse)
					require.ErrorContains(t, err, "this session")
					require.NoError(t, m.Leave(t.Context()))
				})
			})
		}
	}
}

// A second Leave waits for what the first one has left behind.
func TestEachLeaveWaitsUntilTheMemberIsGone(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		m := joins(v, zkgroup.New(v.Session(), groupPath), "a", "")
		removed := v.Server.Intercept(zktest.On(zktest.Delete, memberPath).Hold().Nth(1))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.Leave(short), context.DeadlineExceeded)
		time.AfterFunc(time.Second, removed.Release)
		require.NoError(t, m.Leave(t.Context()))
		require.False(t, v.Exists(memberPath))
	})
}

// A new leader gives the session of a dead member its whole timeout again, and so does a server that starts again.
func TestJoinOutwaitsADeadMemberThroughChangesOfTheLeader(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 10 * time.Second, 14 * time.Second} {
		for _, changes := range []int{1, 2} {
			t.Run(fmt.Sprintf("after=%v,changes=%d", after, changes), func(t *testing.T) {
				proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
					old := e.SessionAt(t, 0)
					_, err := zkgroup.New(old, groupPath).Join(t.Context(), zkgroup.Member{ID: "a"})
					require.NoError(t, err)
					e.Partition(old.ID())
					go old.Close()
					go func() {
						for i := range changes {
							time.Sleep(after)
							e.ElectLeader(i)
						}
					}()
					_, err = zkgroup.New(e.SessionAt(t, 1), groupPath).Join(t.Context(), zkgroup.Member{ID: "a"})
					require.NoError(t, err)
				})
			})
		}
	}
}

func TestJoinOutwaitsADeadMemberThroughARestartOfTheServer(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		joins(v, zkgroup.New(s, groupPath), "a", "")
		g := zkgroup.New(v.Session(), groupPath)
		dies(v, s)
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*7*time.Second, v.Server.Restart)
		}
		joins(v, g, "a", "")
	})
}

// The event that tells the end of the dead member's node never comes.
func TestJoinLooksBeforeItTakesAMemberForAlive(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(13 * time.Second))
		joins(v, zkgroup.New(s, groupPath), "a", "")
		g := zkgroup.New(v.Session(zksync.WithTimeout(10*time.Second)), groupPath)
		v.Server.Intercept(zktest.On(zktest.EventDeleted, memberPath).Lose())
		dies(v, s)
		joins(v, g, "a", "")
	})
}

// The session of the member that has died lasts longer than this one would.
func TestJoinOutwaitsADeadMemberWithALongerTimeout(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(40 * time.Second))
		joins(v, zkgroup.New(s, groupPath), "a", "old")
		g := zkgroup.New(v.Session(), groupPath)
		dies(v, s)
		begun := time.Now()
		joins(v, g, "a", "new")
		v.Within(begun, 42*time.Second, "Join")
	})
}

// Whoever refuses to wait any longer says so, and that the caller may go on waiting. Nothing tells how long the other session lasts.
func TestJoinMayBeTriedAgainWhileTheSessionOfAnotherMemberLives(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(40 * time.Second))
		joins(v, zkgroup.New(s, groupPath), "a", "old")
		g := zkgroup.New(v.Session(zksync.WithTimeout(10*time.Second)), groupPath)
		for _, name := range v.Children(groupPath + "/zkgroup/writers") {
			v.Remove(groupPath + "/zkgroup/writers/" + name)
		}
		dies(v, s)
		for tries := 0; ; tries++ {
			_, err := g.Join(t.Context(), zkgroup.Member{ID: "a", Data: []byte("new")})
			if err == nil {
				require.Equal(t, 2, tries)
				break
			}
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			require.NotContains(t, err.Error(), "living")
		}
		require.Equal(t, []string{"a=new"}, members(v, g))
	})
}

// The caller's context lives, so the error says what has ended: the session.
func TestASetDataThatMeetsCloseSaysThatTheSessionIsClosed(t *testing.T) {
	for _, cut := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			m := joins(v, zkgroup.New(s, groupPath), "a", "first")
			var heal func()
			id := s.ID()
			if cut {
				heal = v.Server.Refuse()
				v.Server.Disconnect(id)
			} else {
				heal = v.Server.Freeze()
			}
			told := make(chan error, 1)
			go func() { told <- m.SetData(context.Background(), []byte("second")) }()
			time.Sleep(time.Second)
			require.NoError(t, s.Close())
			err := <-told
			require.ErrorIs(t, err, zksync.ErrClosed)
			require.NotErrorIs(t, err, context.Canceled)
			heal()
			v.Server.Expire(id)
		})
	}
}

// While a member is cut off, somebody removes its node, and another process takes the ID.
func TestAMemberWhoseIDAnotherHasTakenIsToldAndLeavesItAlone(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
			s, other := v.Session(), zkgroup.New(v.Session(), groupPath)
			m := joins(v, zkgroup.New(s, groupPath), "a", "first")
			lost := m.Lost()
			heal := v.Server.Partition(s.ID())
			v.Server.Disconnect(s.ID())
			v.Server.Delete(memberPath)
			n := joins(v, other, "a", "other")
			told := make(chan error, 1)
			short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			go func() {
				if leaves {
					told <- m.Leave(short)
				} else {
					told <- m.SetData(short, []byte("second"))
				}
			}()
			v.Quiet()
			heal()
			v.Awaits(lost, "it is told that it is no member")
			if leaves {
				require.NoError(t, <-told)
			} else {
				err := <-told
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.True(t, zksync.Ambiguous(err))
			}
			require.Equal(t, []string{"a=other"}, members(v, other))
			require.False(t, proving.IsClosed(n.Lost()))
			require.NoError(t, n.Leave(t.Context()))
			time.Sleep(time.Second)
			if !leaves {
				require.Equal(t, []string{"a=second"}, members(v, other), "it joins again with the newest data")
			}
		})
	}
}

// A request that removes a node is cut. Meanwhile somebody has removed the node, and another has made his at its place.
func TestALeaveThatWasCutLeavesTheNodeOfAnotherAlone(t *testing.T) {
	for name, at := range map[string]string{"a member": memberPath, "a worker": groupPath + "/zkgroup/working/a"} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				g := zkgroup.New(s, groupPath)
				m := joins(v, g, "a", "")
				ctx, cancel := context.WithCancel(t.Context())
				worked := make(chan error, 1)
				go func() { worked <- g.Assign(ctx, m, items(3), untilEnd) }()
				v.Queued(groupPath+"/zkgroup/working", 1)
				v.Quiet()
				cut := v.Server.Intercept(zktest.On(zktest.Delete, at).Of(s.ID()).Hold().Nth(1))
				cancel()
				left := make(chan error, 1)
				go func() { left <- m.Leave(t.Context()) }()
				v.Quiet()
				require.Equal(t, 1, cut.Held())
				v.Server.Delete(at)
				v.Put(at, "other")
				v.Server.Disconnect(s.ID())
				require.NoError(t, <-left)
				require.NoError(t, <-worked)
				v.Later()
				node, there := v.Server.Node(at)
				require.True(t, there)
				require.Equal(t, "other", string(node.Data))
			})
		})
	}
}

// Without the error, a caller takes it that the ID is free. The attempts go on.
func TestALeaveThatIsRefusedSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(v *proving.Env) (allow func())
		want   error
	}{
		"no permission": {func(v *proving.Env) func() {
			return v.Server.Intercept(zktest.On(zktest.Delete, memberPath).Error(zktest.CodeNoAuth)).Remove
		}, zk.ErrNoAuth},
		"no writers": {func(v *proving.Env) func() {
			v.Server.DeleteAll(groupPath + "/zkgroup/writers")
			return func() { v.Server.Create(groupPath+"/zkgroup/writers", nil, 0, 0) }
		}, zksync.ErrBroken},
	} {
		for _, end := range []string{"allowed later", "Close"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s := v.Session()
					m := joins(v, zkgroup.New(s, groupPath), "a", "")
					allow := c.refuse(v)
					require.ErrorIs(t, m.Leave(t.Context()), c.want)
					time.Sleep(time.Minute)
					require.True(t, v.Exists(memberPath))
					require.ErrorIs(t, m.Leave(t.Context()), c.want, "again")
					if end == "Close" {
						start := time.Now()
						require.NoError(t, s.Close())
						require.Zero(t, time.Since(start))
					} else {
						allow()
						time.Sleep(1500 * time.Millisecond) // the longest pause, and its spread
						require.NoError(t, m.Leave(t.Context()))
					}
					require.False(t, v.Exists(memberPath))
				})
			})
		}
	}
}

// Somebody writes to the node while the request is on its way that removes it.
func TestALeaveThatMeetsAForeignWriteRemovesTheMember(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := joins(v, zkgroup.New(v.Session(), groupPath), "a", "")
		late := v.Server.Intercept(zktest.On(zktest.Delete, memberPath).Hold().Nth(1))
		left := make(chan error, 1)
		go func() { left <- m.Leave(t.Context()) }()
		v.Quiet()
		v.Server.Set(memberPath, []byte("foreign"))
		late.Release()
		require.NoError(t, <-left)
		require.False(t, v.Exists(memberPath))
	})
}

// The request lies in a server that the client has left, and to which it comes back when another member has the ID.
func TestARequestOfAMemberThatLingersLeavesTheMemberAloneThatHasTakenTheID(t *testing.T) {
	for op, call := range map[zktest.Op]func(ctx context.Context, m *zkgroup.Membership) error{
		zktest.Delete:  func(ctx context.Context, m *zkgroup.Membership) error { return m.Leave(ctx) },
		zktest.SetData: func(ctx context.Context, m *zkgroup.Membership) error { return m.SetData(ctx, []byte("late")) },
	} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				m, err := zkgroup.New(s, groupPath).Join(t.Context(), zkgroup.Member{ID: "a"})
				require.NoError(t, err)
				late := e.Intercept(zktest.On(op, memberPath).Of(s.ID()).Hold().Queued().Nth(1))
				done := make(chan error, 1)
				go func() { done <- call(t.Context(), m) }()
				require.NoError(t, late.WaitHeld(t.Context()))
				e.Disconnect(s.ID())
				require.NoError(t, <-done)
				require.NoError(t, m.Leave(t.Context()))
				other := zkgroup.New(e.SessionAt(t, 2), groupPath)
				n, err := other.Join(t.Context(), zkgroup.Member{ID: "a", Data: []byte("other")})
				require.NoError(t, err)
				for e.At(s.ID()) != 0 {
					e.Disconnect(s.ID())
					time.Sleep(100 * time.Millisecond)
				}
				late.Release()
				time.Sleep(time.Minute)
				require.False(t, proving.IsClosed(n.Lost()))
				now, err := other.Members(t.Context())
				require.NoError(t, err)
				require.Equal(t, []zkgroup.Member{{ID: "a", Data: []byte("other")}}, now)
			})
		})
	}
}

// It is no loss that somebody else writes to the node, nor that the connection was lost.
func TestAMemberKeepsItsPlaceThroughDisconnectsAndForeignWrites(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g := zkgroup.New(s, groupPath)
		m := joins(v, g, "a", "0")
		lost := m.Lost()
		for i := range 3 {
			v.Server.Disconnect(s.ID())
			require.NoError(t, m.SetData(t.Context(), []byte{byte('1' + i)}))
			v.Server.Set(memberPath, []byte("foreign"))
			require.NoError(t, m.SetData(t.Context(), []byte("mine")))
			require.NoError(t, m.SetData(t.Context(), []byte("again")))
			require.Equal(t, []string{"a=again"}, members(v, g))
		}
		require.False(t, proving.IsClosed(lost))
		require.NoError(t, m.Leave(t.Context()))
		require.Empty(t, members(v, g))
	})
}

// Types of every kind have this error, so it names none.
func TestABrokenGroupIsNoBarrier(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		g := zkgroup.New(v.Session(), groupPath)
		require.NoError(t, joins(v, g, "a", "").Leave(t.Context()))
		v.Remove(groupPath + "/zkgroup/members")
		_, err := g.Join(t.Context(), zkgroup.Member{ID: "a"})
		require.ErrorIs(t, err, zksync.ErrBroken)
		require.EqualError(t, err, "zkgroup: join "+groupPath+": the group is broken: another program has removed nodes of it; remove the rest, too, and join again")
	})
}
