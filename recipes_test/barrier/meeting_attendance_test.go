package barrier_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// attends asks who is where.
func attends(t *testing.T, ask func(context.Context) (arrived, missing []zksync.Owner, err error)) (arrived, missing []string) {
	t.Helper()
	came, comes, err := ask(context.Background())
	require.NoError(t, err)
	for _, o := range came {
		arrived = append(arrived, o.Name)
	}
	for _, o := range comes {
		missing = append(missing, o.Name)
	}
	slices.Sort(missing)
	return arrived, missing
}

// missingFrom names the owners of the members that are not done.
func missingFrom(t *testing.T, g *zkwaitgroup.WaitGroup) (missing []string) {
	t.Helper()
	owners, err := g.Missing(context.Background())
	require.NoError(t, err)
	for _, o := range owners {
		missing = append(missing, o.Name)
	}
	slices.Sort(missing)
	return missing
}

func TestWhoHasNotArrivedAtAMeetingPointCanBeAsked(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		name := func(n string) zksync.Option { return zksync.WithName(n) }

		ann, bob := zkbarrier.NewBarrier(s, proving.BarrierPath, 3, name("ann")), zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 3, name("bob"))
		arrived, missing := attends(t, ann.Attendance)
		require.Empty(t, arrived)
		require.Equal(t, []string{"", "", ""}, missing)
		first := await(ctx, bob)
		gathered(v, ann, 1)
		second := await(ctx, ann)
		gathered(v, ann, 2)
		arrived, missing = attends(t, bob.Attendance)
		require.Equal(t, []string{"bob", "ann"}, arrived)
		require.Equal(t, []string{""}, missing)
		leave(v, first, second, await(ctx, bob))

		p, q := zkphaser.New(s, proving.PhaserPath, name("p")), zkphaser.New(v.Session(), proving.PhaserPath, name("q"))
		v.Gives(0, p.Register)
		v.Gives(0, q.Register)
		v.Gives(0, q.Arrive)
		arrived, missing = attends(t, p.Attendance)
		require.Equal(t, []string{"q"}, arrived)
		require.Equal(t, []string{"p"}, missing)
		v.Gives(0, p.Arrive)
		arrived, missing = attends(t, q.Attendance)
		require.Empty(t, arrived)
		require.Equal(t, []string{"p", "q"}, missing, "of the next phase")

		g, h := zkwaitgroup.New(s, "/groups/a", name("g")), zkwaitgroup.New(v.Session(), "/groups/a", name("h"))
		require.NoError(t, g.AddContext(ctx, 2))
		require.NoError(t, h.AddContext(ctx, 1))
		require.Equal(t, []string{"g", "g", "h"}, missingFrom(t, h))
		require.NoError(t, g.DoneContext(ctx))
		require.Equal(t, []string{"g", "h"}, missingFrom(t, g))
	})
}
