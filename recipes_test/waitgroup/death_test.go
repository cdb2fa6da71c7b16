package waitgroup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

func TestTheDeadAreReportedAndNotWaitedFor(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 2)
		dying := v.Session(zksync.WithName("loader-7"))
		require.NoError(t, zkwaitgroup.New(dying, proving.GroupPath).AddContext(context.Background(), 2))
		gs[0].Add(1)
		early := proving.Waits(context.Background(), gs[1].WaitContext)
		mirror := make(chan struct{})
		go func() { gs[1].Wait(); close(mirror) }()
		v.Quiet()
		v.Expire(dying)
		v.Queued(proving.GroupPath+"/round/alive", 1)
		v.Quiet()
		require.True(t, early.Pending(), "one is still at work")
		all, err := gs[0].Members(context.Background())
		require.NoError(t, err)
		require.Len(t, all, 2)
		v.Remaining(gs[0], 1)
		gs[0].Done()
		v.Awaits(mirror, "Wait")
		for _, err := range []error{v.Failed(early), gs[0].WaitContext(context.Background()), gs[1].WaitContext(context.Background())} {
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
		v.NothingLeft(proving.GroupPath, "dead")

		// The next round is another one.
		gs[1].Add(1)
		v.Flush()
		w := proving.Waits(context.Background(), gs[0].WaitContext)
		v.Quiet()
		require.True(t, w.Pending())
		gs[1].Done()
		v.Passes(w)
		require.NoError(t, gs[1].WaitContext(context.Background()))
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

func TestTheDeathOfTheLastMemberEndsTheWaitAsSoonAsTheServersKnow(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := groups(v, 1)[0]
		var sessions []*zksync.Session
		for range 5 {
			s := v.Session()
			sessions = append(sessions, s)
			zkwaitgroup.New(s, proving.GroupPath).Add(1)
		}
		w := proving.Waits(context.Background(), g.WaitContext)
		v.Quiet()
		for _, s := range sessions {
			v.Server.Expire(s.ID())
		}
		start := time.Now()
		err := v.Failed(w)
		require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
		var dead *zkwaitgroup.DeadMembersError
		require.ErrorAs(t, err, &dead)
		require.Len(t, dead.Members, 5)
	})
}

// The process did nothing wrong, whatever became of its session. A Done for a member that has died changes nothing.
func TestADoneAfterTheSessionWasLost(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for _, told := range []bool{false, true} {
			s := v.Session()
			g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
			g.Add(2)
			other.Add(1)
			v.Server.Expire(s.ID())
			v.Later()
			if told {
				other.Done()
				require.ErrorIs(t, other.WaitContext(context.Background()), zksync.ErrBroken)
				other.Add(1) // another round: what follows is not for its members
			}
			g.Done()
			g.Add(1)
			g.Done() // still of the first ones
			v.Remaining(other, 2)
			g.Done()
			v.Remaining(other, 1)
			other.Done()
			err := other.WaitContext(context.Background())
			if told {
				require.NoError(t, err)
				require.Panics(t, g.Done)
			} else {
				require.ErrorIs(t, err, zksync.ErrBroken, "they had died")
			}
		}
	})
}

func TestALateDoneOfAnotherForTheDeadIsNoMisuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		gs := groups(v, 2)
		zkwaitgroup.New(s, proving.GroupPath).Add(3) // the coordinator, who dies
		gs[0].Done()
		v.Server.Expire(s.ID())
		require.NoError(t, s.Close())
		gs[0].Done() // of a dead member, of which nobody was told yet
		require.ErrorContains(t, gs[1].WaitContext(context.Background()), "died without Done")
		gs[0].Done() // of one that was reported
		gs[0].Add(1)
		gs[0].Done()
		require.PanicsWithValue(t, "sync: negative WaitGroup counter", gs[0].Done)
	})
}

func TestGoContextTellsAMemberOfItsDeath(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g := zkwaitgroup.New(s, proving.GroupPath)
		cause := make(chan error, 1)
		require.NoError(t, g.GoContext(context.Background(), func(ctx context.Context) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
		}))
		v.Server.Expire(s.ID())
		require.ErrorIs(t, <-cause, zksync.ErrLost)
		v.Later()
		require.ErrorIs(t, groups(v, 1)[0].WaitContext(context.Background()), zksync.ErrBroken, "its Done came after its death")
	})
}

func TestAWaitOfAWaitGroupOutlivesItsSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g := groups(v, 1)[0]
		g.Add(1)
		w := proving.Waits(context.Background(), zkwaitgroup.New(s, proving.GroupPath).WaitContext)
		v.Quiet()
		v.Server.Disconnect(s.ID())
		time.Sleep(time.Second)
		v.Server.Expire(s.ID())
		time.Sleep(time.Second)
		require.True(t, w.Pending())
		g.Done()
		v.Passes(w)
	})
}

// Of a round that is over nothing is learned from what happened since.
func TestAWaiterThatWasAwayLearnsWhoDiedInItsRound(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		gs := groups(v, 2)
		dying := v.Session(zksync.WithName("first"))
		zkwaitgroup.New(dying, proving.GroupPath).Add(1)
		w := proving.Waits(context.Background(), zkwaitgroup.New(s, proving.GroupPath).WaitContext)
		v.Quiet()
		heal := v.Server.Partition(s.ID())
		v.Server.Expire(dying.ID())
		require.ErrorContains(t, gs[0].WaitContext(context.Background()), "first")
		gs[1].Add(1)
		gs[1].Done()
		gs[1].Add(1)
		require.True(t, w.Pending())
		heal()
		require.ErrorContains(t, v.Failed(w), "first")
		gs[1].Done()
	})
}

// The limits that docs/guarantees/parties.md names; how many records of a round are kept by name, reports checks.
func TestAWaiterThatWasAwayIsToldWhileItsRoundIsOneOfTheLastEightWithDeaths(t *testing.T) {
	const kept = 8
	for _, rounds := range []int{kept, kept + 1} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session(zksync.WithTimeout(time.Minute))
			g := groups(v, 1)[0]
			var w *proving.Attempt
			var heal func()
			for i := range rounds {
				dying := v.Session(zksync.WithName(fmt.Sprintf("dead-%d", i)))
				zkwaitgroup.New(dying, proving.GroupPath).Add(1)
				if i == 0 {
					w = proving.Waits(context.Background(), zkwaitgroup.New(s, proving.GroupPath).WaitContext)
					v.Quiet()
					heal = v.Server.Partition(s.ID())
				}
				v.Server.Expire(dying.ID())
				require.ErrorContains(t, g.WaitContext(context.Background()), fmt.Sprintf("dead-%d", i))
			}
			require.True(t, w.Pending())
			heal()
			v.Awaits(w.Done, "the wait to end")
			if rounds > kept {
				require.NoError(t, w.Err, "nobody knows any more")
				return
			}
			require.ErrorContains(t, w.Err, "dead-0")
		})
	}
}

// A session that was given up lives on as long as no attempt to end it succeeds, and the node of the member with it.
func TestAMemberThatIsLostGoesWithItsDoneThoughItsSessionLivesOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(6 * time.Second))
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		g.Add(1)
		lost := s.ID()
		v.Server.Intercept(zktest.On(zktest.CloseSession, "**").Of(lost).LoseRequest())
		heal := v.Server.DropReplies(lost)
		v.Eventually(func() bool { return s.ID() != 0 && s.ID() != lost }, "there is no next session")
		heal()
		w := proving.Waits(context.Background(), other.WaitContext)
		v.Quiet()
		require.True(t, w.Pending(), "the node is there")
		require.NoError(t, g.DoneContext(context.Background()))
		v.Passes(w)
	})
}

// Others may say Done for members of a process; when its session is lost afterwards there is nothing left of them to forgive.
func TestADoneOfALivingMemberIsNotTakenForOneOfThoseWhomOthersEnded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, s2 := v.Session(), v.Session()
		g, b := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		g.Add(2) // a coordinator
		b.Done()
		b.Done()
		require.NoError(t, b.WaitContext(context.Background())) // nobody died
		zkwaitgroup.New(s2, proving.GroupPath).Add(1)
		v.Server.Expire(s2.ID())
		v.Later()
		require.ErrorIs(t, b.WaitContext(context.Background()), zksync.ErrBroken)
		v.Server.Expire(s.ID())
		v.Later()
		g.Add(1)
		g.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		assert.NotErrorIs(t, b.WaitContext(ctx), context.DeadlineExceeded)
	})
}

// As many rounds with deaths came before as are kept, and another one after.
func TestMembersWhomOthersEndedInARoundThatIsKeptWereNotReported(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		s := v.Session()
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		aDeath := func() {
			dying := v.Session()
			require.NoError(t, zkwaitgroup.New(dying, proving.GroupPath).AddContext(ctx, 1))
			v.Server.Expire(dying.ID())
			require.ErrorIs(t, other.WaitContext(ctx), zksync.ErrBroken)
		}
		for range 8 {
			aDeath()
		}
		require.NoError(t, g.AddContext(ctx, 2))
		require.NoError(t, other.AddContext(ctx, -2))
		require.NoError(t, other.WaitContext(ctx))
		aDeath()
		v.Server.Expire(s.ID())
		v.Later()
		require.NoError(t, g.AddContext(ctx, 1))
		require.NoError(t, g.DoneContext(ctx))
		require.NoError(t, other.WaitContext(ctx), "its only member is done")
	})
}

// The report of the round in which a member died is not kept any more, or does not name it. Its Done changes nothing all the same.
func TestADoneForADeadMemberThatIsForgottenTakesNoOther(t *testing.T) {
	for name, c := range map[string]struct{ dead, later int }{"many rounds": {0, 8}, "many dead": {65, 0}} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, other := v.Session(), groups(v, 1)[0]
				var all []*zkwaitgroup.WaitGroup
				die := func(s *zksync.Session, n int) {
					for range n {
						g := zkwaitgroup.New(s, proving.GroupPath)
						require.NoError(t, g.AddContext(t.Context(), 1))
						all = append(all, g)
					}
					v.Server.Expire(s.ID())
					require.ErrorIs(t, other.WaitContext(t.Context()), zksync.ErrBroken)
				}
				die(s, 1+c.dead)
				died := all
				for range c.later {
					die(v.Session(), 1)
				}
				v.Later()
				require.NoError(t, other.AddContext(t.Context(), 1))
				for _, g := range died {
					require.NoError(t, g.DoneContext(t.Context()))
				}
				v.Remaining(other, 1)
				require.NoError(t, other.DoneContext(t.Context()))
			})
		})
	}
}
