package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

func TestTheDeadAreReportedAndNotWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gs := v.groups(2)
		dying := v.session(zksync.WithName("loader-7"))
		require.NoError(t, zkwaitgroup.New(dying, groupPath).AddContext(context.Background(), 2))
		gs[0].Add(1)
		early := waits(context.Background(), gs[1].WaitContext)
		mirror := make(chan struct{})
		go func() { gs[1].Wait(); close(mirror) }()
		v.quiet()
		v.expire(dying)
		v.queued(groupPath+"/round/alive", 1)
		v.quiet()
		require.True(t, early.pending(), "one is still at work")
		all, err := gs[0].Members(context.Background())
		require.NoError(t, err)
		require.Len(t, all, 2)
		v.remaining(gs[0], 1)
		gs[0].Done()
		v.awaits(mirror, "Wait")
		for _, err := range []error{v.failed(early), gs[0].WaitContext(context.Background()), gs[1].WaitContext(context.Background())} {
			require.ErrorIs(t, err, zksync.ErrBroken)
			require.ErrorContains(t, err, "loader-7")
			var dead *zkwaitgroup.DeadMembersError
			require.ErrorAs(t, err, &dead)
			require.Len(t, dead.Members, 1)
			require.Equal(t, 2, dead.Members[0].N)
			require.Equal(t, "loader-7", dead.Members[0].Name)
			require.NotEmpty(t, dead.Members[0].Host)
			require.NotZero(t, dead.Members[0].PID)
		}
		v.nothingLeft(groupPath, "dead")

		// The next round is another one.
		gs[1].Add(1)
		v.flush()
		w := waits(context.Background(), gs[0].WaitContext)
		v.quiet()
		require.True(t, w.pending())
		gs[1].Done()
		v.passes(w)
		require.NoError(t, gs[1].WaitContext(context.Background()))
		v.nothingLeft(groupPath, "dead")
	})
}

func TestTheDeathOfTheLastMemberEndsTheWaitAsSoonAsTheServersKnow(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		g := v.groups(1)[0]
		var sessions []*zksync.Session
		for range 5 {
			s := v.session()
			sessions = append(sessions, s)
			zkwaitgroup.New(s, groupPath).Add(1)
		}
		w := waits(context.Background(), g.WaitContext)
		v.quiet()
		for _, s := range sessions {
			v.srv.Expire(s.ID())
		}
		start := time.Now()
		err := v.failed(w)
		require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
		var dead *zkwaitgroup.DeadMembersError
		require.ErrorAs(t, err, &dead)
		require.Len(t, dead.Members, 5)
	})
}

// The process did nothing wrong, whatever became of its session.
func TestADoneAfterTheSessionWasLost(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		for _, told := range []bool{false, true} {
			s := v.session()
			g, other := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
			g.Add(2)
			other.Add(1)
			v.srv.Expire(s.ID())
			v.later()
			if told {
				other.Done()
				require.ErrorIs(t, other.WaitContext(context.Background()), zksync.ErrBroken)
				other.Add(1) // another round: what follows is not for its members
			}
			g.Done()
			g.Add(1)
			g.Done() // still of the first ones
			v.remaining(other, 2)
			g.Done()
			v.remaining(other, 1)
			other.Done()
			require.NoError(t, other.WaitContext(context.Background()))
			require.Panics(t, g.Done)
		}
	})
}

func TestALateDoneOfAnotherForTheDeadIsNoMisuse(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		gs := v.groups(2)
		zkwaitgroup.New(s, groupPath).Add(3) // the coordinator, who dies
		gs[0].Done()
		v.srv.Expire(s.ID())
		require.NoError(t, s.Close())
		gs[0].Done() // of a dead member, of which nobody was told yet
		require.ErrorContains(t, gs[1].WaitContext(context.Background()), "died without Done")
		gs[0].Done() // of one that was reported
		gs[0].Add(1)
		gs[0].Done()
		require.PanicsWithValue(t, "zkwaitgroup: negative WaitGroup counter", gs[0].Done)
	})
}

func TestGoContextTellsAMemberOfItsDeath(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		g := zkwaitgroup.New(s, groupPath)
		cause := make(chan error, 1)
		require.NoError(t, g.GoContext(context.Background(), func(ctx context.Context) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
		}))
		v.srv.Expire(s.ID())
		require.ErrorIs(t, <-cause, zksync.ErrLost)
		v.later()
		require.NoError(t, v.groups(1)[0].WaitContext(context.Background()), "it said that it was done before anybody asked")
	})
}

func TestAWaitOfAWaitGroupOutlivesItsSession(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		g := v.groups(1)[0]
		g.Add(1)
		w := waits(context.Background(), zkwaitgroup.New(s, groupPath).WaitContext)
		v.quiet()
		v.srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		v.srv.Expire(s.ID())
		time.Sleep(time.Second)
		require.True(t, w.pending())
		g.Done()
		v.passes(w)
	})
}

// Of a round that is over nothing is learned from what happened since.
func TestAWaiterThatWasAwayLearnsWhoDiedInItsRound(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(time.Minute))
		gs := v.groups(2)
		dying := v.session(zksync.WithName("first"))
		zkwaitgroup.New(dying, groupPath).Add(1)
		w := waits(context.Background(), zkwaitgroup.New(s, groupPath).WaitContext)
		v.quiet()
		heal := v.srv.Partition(s.ID())
		v.srv.Expire(dying.ID())
		require.ErrorContains(t, gs[0].WaitContext(context.Background()), "first")
		gs[1].Add(1)
		gs[1].Done()
		gs[1].Add(1)
		require.True(t, w.pending())
		heal()
		require.ErrorContains(t, v.failed(w), "first")
		gs[1].Done()
	})
}

// The limits that docs/guarantees.md names; how many records of a round are kept by name, reports checks.
func TestAWaiterThatWasAwayIsToldWhileItsRoundIsOneOfTheLastEightWithDeaths(t *testing.T) {
	const kept = 8
	for _, rounds := range []int{kept, kept + 1} {
		inProcess(t, func(t *testing.T, v *env) {
			s := v.session(zksync.WithTimeout(time.Minute))
			g := v.groups(1)[0]
			var w *attempt
			var heal func()
			for i := range rounds {
				dying := v.session(zksync.WithName(fmt.Sprintf("dead-%d", i)))
				zkwaitgroup.New(dying, groupPath).Add(1)
				if i == 0 {
					w = waits(context.Background(), zkwaitgroup.New(s, groupPath).WaitContext)
					v.quiet()
					heal = v.srv.Partition(s.ID())
				}
				v.srv.Expire(dying.ID())
				require.ErrorContains(t, g.WaitContext(context.Background()), fmt.Sprintf("dead-%d", i))
			}
			require.True(t, w.pending())
			heal()
			v.awaits(w.done, "the wait to end")
			if rounds > kept {
				require.NoError(t, w.err, "nobody knows any more")
				return
			}
			require.ErrorContains(t, w.err, "dead-0")
		})
	}
}

// The ZooKeeper session of a tapped connection outlives ours, and the node of the member with it.
func TestAMemberThatIsLostOnATappedConnectionGoesWithItsDone(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		conn := v.srv.Connect(t, 6*time.Second)
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		g, other := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
		g.Add(1)
		held := v.srv.Intercept(zktest.On(zktest.Sync, "/").Of(s.ID()).Hold())
		time.Sleep(7 * time.Second)
		held.Remove()
		time.Sleep(5 * time.Second)
		require.NoError(t, g.DoneContext(context.Background()))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		assert.NotErrorIs(t, other.WaitContext(ctx), context.DeadlineExceeded)
		require.NoError(t, s.Close())
		time.Sleep(time.Minute)
		zktest.CheckEphemerals(t, v.srv, conn.SessionID())
	})
}

// Others may say Done for members of a process; when its session is lost afterwards there is nothing left of them to forgive.
func TestADoneOfALivingMemberIsNotTakenForOneOfThoseWhomOthersEnded(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s, s2 := v.session(), v.session()
		g, b := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
		g.Add(2) // a coordinator
		b.Done()
		b.Done()
		require.NoError(t, b.WaitContext(context.Background())) // nobody died
		zkwaitgroup.New(s2, groupPath).Add(1)
		v.srv.Expire(s2.ID())
		v.later()
		require.ErrorIs(t, b.WaitContext(context.Background()), zksync.ErrBroken)
		v.srv.Expire(s.ID())
		v.later()
		g.Add(1)
		g.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		assert.NotErrorIs(t, b.WaitContext(ctx), context.DeadlineExceeded)
	})
}
