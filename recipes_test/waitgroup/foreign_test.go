package waitgroup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// Somebody has written a number of members that no list can have.
func TestMissingRefusesMoreMembersThanAListCanHave(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		g := zkwaitgroup.New(v.Session(), proving.GroupPath)
		require.NoError(t, g.AddContext(ctx, 1))
		records := proving.GroupPath + "/round/members"
		v.Server.Set(records+"/"+v.Server.Children(records)[0], []byte(`{"n":2000000}`))
		missing, err := g.Missing(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, proving.GroupPath)
		require.Empty(t, missing)
		all, err := g.Members(ctx)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, 2_000_000, all[0].N)
	})
}

func TestAGroupWithoutTheNodesOfItsMembersIsBroken(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		gs := groups(v, 2)
		require.NoError(t, gs[0].AddContext(ctx, 2))
		v.Server.DeleteAll(proving.GroupPath + "/round/alive")
		require.ErrorIs(t, gs[0].DoneContext(ctx), zksync.ErrBroken)
		require.ErrorIs(t, gs[0].AddContext(ctx, 1), zksync.ErrBroken)
		require.ErrorIs(t, gs[1].AddContext(ctx, 1), zksync.ErrBroken)
		v.Server.DeleteAll(proving.GroupPath + "/round")
		require.NoError(t, gs[1].AddContext(ctx, 1))
		require.NoError(t, gs[1].DoneContext(ctx))
		v.NothingLeft(proving.GroupPath)
	})
}

// Each of many takers has its number in a record, which takes more than 4096 bytes then.
func TestTheOwnerOfARecordWithManyTakersIsNamed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const takers = 120
		s, takes, g := v.Session(zksync.WithName("loader-7")), v.Session(), groups(v, 1)[0]
		require.NoError(t, zkwaitgroup.New(s, proving.GroupPath).AddContext(t.Context(), takers+1))
		st, err := g.State(t.Context())
		require.NoError(t, err)
		require.Len(t, st.Entries, 1)
		want := st.Entries[0]
		require.Equal(t, "loader-7", want.Owner.Name)
		for range takers {
			require.NoError(t, zkwaitgroup.New(takes, proving.GroupPath).DoneContext(t.Context()))
		}
		st, err = g.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, []zksync.Contender{want}, st.Entries)
		all, err := g.Members(t.Context())
		require.NoError(t, err)
		require.Equal(t, []zkwaitgroup.Member{{Owner: want.Owner, N: 1}}, all)
		owners, err := g.Missing(t.Context())
		require.NoError(t, err)
		require.Equal(t, []zksync.Owner{want.Owner}, owners)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, g.WaitContext(short), "1 process has members that are not done: "+want.Owner.String())
		v.Server.Expire(s.ID())
		require.EqualError(t, g.WaitContext(t.Context()), "zkwaitgroup: wait "+proving.GroupPath+": died without Done: "+want.Owner.String())
	})
}

// deadOfOthers ends a round in which so many records of dead members have such names and data, which another program has written.
func deadOfOthers(v *proving.Env, g *zkwaitgroup.WaitGroup, n int, name, data string, begun ...func()) error {
	require.NoError(v.T, g.AddContext(v.T.Context(), 1))
	for _, f := range begun {
		f()
	}
	for i := range n {
		v.Server.Create(fmt.Sprintf("%s/round/members/%03d%s", proving.GroupPath, i, name), []byte(data), 0, 0)
	}
	require.NoError(v.T, g.DoneContext(v.T.Context()))
	ctx, cancel := context.WithTimeout(v.T.Context(), time.Minute)
	defer cancel()
	return g.WaitContext(ctx)
}

const halfAMegabyte = 1 << 19

// The owners of the dead have the longest names that are shown, and each byte of them takes six in the report.
func TestFewerRoundsWithDeathsAreKeptIfTheyTakeMoreThanHalfAMegabyte(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := groups(v, 1)[0]
		owner := fmt.Sprintf(`{"n":2,"host":%q,"pid":4711,"name":%q}`, strings.Repeat("<", 253), strings.Repeat("&", 64))
		rounds := 9
		if testing.Short() {
			rounds = 5 // four take more
		}
		for range rounds {
			require.Equal(t, 64*2, reports(t, 70, deadOfOthers(v, g, 70, "", owner)))
			require.LessOrEqual(t, len(v.Data(proving.GroupPath+"/dead")), halfAMegabyte)
		}
		var kept struct{ Rounds []any }
		require.NoError(t, json.Unmarshal([]byte(v.Data(proving.GroupPath+"/dead")), &kept))
		require.Greater(t, len(kept.Rounds), 2)
	})
}

func TestTheReportOfTheDeadIsBoundedWhateverOthersHaveWritten(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	many := strings.TrimSuffix(strings.Repeat(`{"n":1,"host":"h","id":"i"},`, 30_000), ",")
	for name, dead := range map[string]string{
		"long hosts":      `{"rounds":[{"round":1,"dead":[{"n":1,"host":"` + strings.Repeat(long, 7) + `"}]}]}`,
		"long ids":        `{"rounds":[{"round":1,"dead":[{"n":1,"host":"h","id":"` + strings.Repeat(long, 7) + `"}]}]}`,
		"many dead":       `{"rounds":[{"round":1,"dead":[` + many + `]}]}`,
		"many takers":     `{"rounds":[{"round":1,"dead":[{"n":1,"taken":{"` + strings.Repeat(long, 7) + `":1}}]}]}`,
		"many rounds":     `{"rounds":[` + strings.TrimSuffix(strings.Repeat(`{"round":1},`, 60_000), ",") + `]}`,
		"fewer than none": `{"rounds":[{"round":1,"dead":[],"more":-9}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				g := groups(v, 1)[0]
				v.Put(proving.GroupPath, "")
				v.Put(proving.GroupPath+"/dead", dead)
				reports(t, 20, deadOfOthers(v, g, 20, "", `{"n":1,"host":"web-3"}`))
				require.LessOrEqual(t, len(v.Data(proving.GroupPath+"/dead")), halfAMegabyte)
				reports(t, 20, g.WaitContext(t.Context()))
			})
		})
	}
}

func TestTheReportOfARoundIsBoundedWhateverOthersHaveWrittenAboutIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		err := deadOfOthers(v, groups(v, 1)[0], 20, "", `{"n":1,"host":"web-3"}`, func() {
			alive, _ := v.Server.Node(proving.GroupPath + "/round/alive")
			v.Put(proving.GroupPath+"/dead", fmt.Sprintf(`{"rounds":[{"round":%d,"dead":[{"n":1,"host":%q}],"more":%d}]}`,
				alive.Stat.Czxid, strings.Repeat("x", 700_000), math.MaxInt))
		})
		var dead *zkwaitgroup.DeadMembersError
		require.ErrorAs(t, err, &dead)
		require.Len(t, dead.Members, 21)
		require.Equal(t, math.MaxInt, dead.More)
		require.LessOrEqual(t, len(v.Data(proving.GroupPath+"/dead")), halfAMegabyte)
	})
}

// One transaction for all of them would be more than the servers accept.
func TestARoundWhoseRecordsHaveLongNamesEnds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := groups(v, 1)[0]
		reports(t, 12, deadOfOthers(v, g, 12, strings.Repeat("x", 60_000), `{"n":1,"host":"web-3"}`))
		require.LessOrEqual(t, len(v.Data(proving.GroupPath+"/dead")), halfAMegabyte)
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// Others have written numbers whose sums are greater than any.
func TestASumOfMembersThatIsTooGreatIsTheGreatestNumber(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 3)
		records := proving.GroupPath + "/round/members"
		for _, g := range gs {
			require.NoError(t, g.AddContext(t.Context(), 1))
		}
		for i, data := range []string{`{"n":9223372036854775807,"taken":{"x":-9}}`, `{"n":9223372036854775807}`, `{"n":-9223372036854775808,"taken":{"x":9223372036854775807}}`} {
			v.Server.Set(records+"/"+v.Server.Children(records)[i], []byte(data))
		}
		for _, name := range []string{"dead", "dead too"} {
			v.Put(records+"/"+name, `{"n":9223372036854775807}`)
		}
		st, err := gs[0].State(t.Context())
		require.NoError(t, err)
		require.Equal(t, "waiting", st.State)
		require.EqualValues(t, math.MaxInt64, st.Living)
		require.EqualValues(t, math.MaxInt64, st.Members)
		require.Equal(t, "9223372036854775807 members not done, 9223372036854775807 dead", st.Detail)
		require.Len(t, st.Entries, 4)
		n, err := gs[0].Count(t.Context())
		require.NoError(t, err)
		require.Equal(t, math.MaxInt64, n)
		_, err = gs[0].Missing(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

// Another program has deleted the node that shows that the members of a record live. They are dead, and those that are added later
// live.
func TestMembersWhoseNodeWasDeletedAreDead(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 2)
		require.NoError(t, gs[0].AddContext(t.Context(), 2))
		require.NoError(t, gs[1].AddContext(t.Context(), 1))
		require.NoError(t, gs[1].DoneContext(t.Context())) // so that its own watch is all that gs[0] has
		alive := proving.GroupPath + "/round/alive"
		v.Server.DeleteAll(alive + "/" + v.Server.Children(alive)[0])
		v.Quiet()
		require.NoError(t, gs[0].AddContext(t.Context(), 1))
		v.Remaining(gs[1], 1)
		require.NoError(t, gs[0].AddContext(t.Context(), -2))
		v.Remaining(gs[1], 1)
		require.NoError(t, gs[0].DoneContext(t.Context()))
		err := gs[1].WaitContext(t.Context())
		require.Equal(t, 2, reports(t, 1, err))
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// The report has forgotten the round because of its size, so it has fewer than eight rounds.
func TestADoneForADeadMemberThatTheReportForgotTakesNoOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		require.NoError(t, g.AddContext(t.Context(), 1))
		v.Server.Expire(s.ID())
		reports(t, 1, other.WaitContext(t.Context()))
		owner := fmt.Sprintf(`{"n":2,"host":%q,"pid":4711,"name":%q}`, strings.Repeat("<", 253), strings.Repeat("&", 64))
		for range 6 {
			reports(t, 70, deadOfOthers(v, other, 70, "", owner))
		}
		require.NoError(t, other.AddContext(t.Context(), 1))
		require.NoError(t, g.DoneContext(t.Context()), "of a member that died")
		n, err := other.Count(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}
