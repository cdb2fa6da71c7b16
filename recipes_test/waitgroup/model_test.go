package waitgroup_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// roster is a plain model of a group: the members of each session, dead and living, and the
// round's waiters.
type roster struct {
	*proving.Crew
	gs      []*zkwaitgroup.WaitGroup
	own     [3]int // that each WaitGroup added and that are not done
	rounds  int
	vague   bool // something is under way that the model does not show
	waiters []roundWait
}

// roundWait is a wait that began in a round, 0 if it began between two.
type roundWait struct {
	*proving.Attempt
	round int
}

func (r *roster) count() int { return r.own[0] + r.own[1] + r.own[2] }

func TestRandomUseOfAWaitGroupAgreesWithAPlainModel(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			r := &roster{Crew: proving.NewCrew(proving.InRapid(t, rt))}
			for _, s := range r.Sessions {
				r.gs = append(r.gs, zkwaitgroup.New(s, proving.GroupPath))
			}
			rt.Repeat(r.Faults(map[string]func(*rapid.T){
				"add":                   r.add,
				"done":                  func(t *rapid.T) { r.done(t, r.One(t), 1) },
				"add a negative number": func(t *rapid.T) { r.done(t, r.One(t), rapid.IntRange(2, 4).Draw(t, "n")) },
				"done of all at once":   r.doneAll,
				"wait":                  r.wait,
				"wait in a hurry":       r.waitInAHurry,
				"a cancelled add":       r.cancelledAdd,
				"count":                 r.look,
				"settle":                r.settle,
			}))
			r.settle(rt)
			steps++
		})
	})
	t.Logf("%d runs", steps)
}

func (r *roster) add(t *rapid.T) {
	i, n := r.One(t), rapid.IntRange(1, 3).Draw(t, "n")
	if r.count() == 0 {
		r.rounds++
	}
	require.NoError(r.T, r.gs[i].AddContext(context.Background(), n))
	r.own[i] += n
}

func (r *roster) doneAll(t *rapid.T) {
	var all sync.WaitGroup
	for i := range r.gs {
		for range r.own[i] {
			all.Go(func() { require.NoError(r.T, r.gs[i].DoneContext(context.Background())) })
		}
		r.own[i] = 0
	}
	all.Wait()
	r.settle(t)
}

func (r *roster) wait(t *rapid.T) {
	if r.vague {
		r.settle(t)
	}
	w := proving.Waits(context.Background(), r.gs[r.One(t)].WaitContext)
	if r.count() == 0 { // at once, whatever is added next
		<-w.Done
		r.waiters = append(r.waiters, roundWait{w, 0})
		return
	}
	r.waiters = append(r.waiters, roundWait{w, r.rounds})
}

func (r *roster) waitInAHurry(t *rapid.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := r.gs[r.One(t)].WaitContext(ctx)
	require.LessOrEqual(r.T, time.Since(start), 150*time.Millisecond)
	if r.count() > 0 && !r.vague {
		require.ErrorIs(r.T, err, context.DeadlineExceeded)
	}
}

func (r *roster) cancelledAdd(t *rapid.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rapid.IntRange(0, 3).Draw(t, "ms"))*time.Millisecond)
	defer cancel()
	i := r.One(t)
	if err := r.gs[i].AddContext(ctx, 1); err != nil {
		r.vague = true // it may be added, until it is taken back
		return
	}
	if r.count() == 0 {
		r.rounds++
	}
	r.own[i]++
}

// done says that n members are done, through the WaitGroup of session i.
func (r *roster) done(t *rapid.T, i, n int) {
	if r.vague {
		r.settle(t)
	}
	err := r.gs[i].AddContext(context.Background(), -n)
	if n > r.count() {
		require.ErrorIs(r.T, err, zksync.ErrMisuse)
	} else {
		require.NoError(r.T, err)
	}
	taken := min(n, r.own[i])
	r.own[i] -= taken
	for j := range r.own { // whose of the others they were does not matter, as long as none has died
		more := min(n-taken, r.own[j])
		r.own[j] -= more
		taken += more
	}
	if r.count() == 0 {
		r.settle(t)
	}
}

func (r *roster) look(*rapid.T) {
	if r.vague {
		r.Calm()
		r.vague = false
	}
	n, err := r.gs[0].Count(context.Background())
	require.NoError(r.T, err)
	require.Equal(r.T, r.count(), n)
}

// settle waits until everything is quiet, when the model is exact.
func (r *roster) settle(t *rapid.T) {
	r.Calm()
	r.vague = false
	r.look(t)
	for _, w := range r.waiters {
		if r.count() > 0 && w.Pending() {
			continue
		}
		require.False(r.T, w.Pending(), "nobody is left")
		require.NoError(r.T, w.Err)
		require.True(r.T, r.count() == 0 || w.round == 0 || w.round != r.rounds, "it did not wait")
	}
	if r.count() > 0 {
		return
	}
	r.waiters = nil
	require.Empty(r.T, r.Server.Children(proving.GroupPath))
	require.Zero(r.T, r.Server.Watches())
}

// The same with sessions that end. Now nothing is exact but this: nobody waits for ever, nobody
// is accused, and what is said of the dead is possible.
func TestRandomUseOfAWaitGroupWhoseSessionsEnd(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			c := proving.NewCrew(proving.InRapid(t, rt))
			var gs []*zkwaitgroup.WaitGroup
			for _, s := range c.Sessions {
				gs = append(gs, zkwaitgroup.New(s, proving.GroupPath))
			}
			var own [3]int
			expired := false
			rt.Repeat(c.Faults(map[string]func(*rapid.T){
				"add": func(t *rapid.T) {
					i := c.One(t)
					require.NoError(c.T, gs[i].AddContext(context.Background(), 2))
					own[i] += 2
				},
				"done": func(t *rapid.T) {
					i := c.One(t)
					if own[i] == 0 {
						t.Skip("nobody is left")
					}
					require.NoError(c.T, gs[i].DoneContext(context.Background()), "it did nothing wrong")
					own[i]--
				},
				"expire": func(t *rapid.T) {
					c.Server.Expire(c.Sessions[c.One(t)].ID())
					expired = true
				},
				"advance": func(*rapid.T) { time.Sleep(time.Second) },
			}))
			c.Calm()
			for i, g := range gs {
				for range own[i] {
					require.NoError(c.T, g.DoneContext(context.Background()), "it did nothing wrong")
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var dead *zkwaitgroup.DeadMembersError
			err := gs[0].WaitContext(ctx)
			require.True(c.T, err == nil || expired && errors.As(err, &dead), "%v", err)
			n, err := gs[1].Count(ctx)
			require.NoError(c.T, err)
			require.Zero(c.T, n)
			for _, child := range c.Server.Children(proving.GroupPath) {
				require.Equal(c.T, "dead", child)
			}
		})
	})
}
