package zkgroup_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

var until = zkgroup.WithUntilDone()

// does has a member of its own work on these items until all are done, and returns how many it has run.
func does(v *proving.Env, id string, list []string, opts ...zkgroup.AssignOption) int {
	v.T.Helper()
	c, s := newTally(), v.Session()
	defer s.Close()
	a := begins(v, s, id, list, c.run(id, always(0)), append(opts, until)...)
	a.ended(v.T)
	return c.total()
}

func TestAcceptance188ARoundThatIsDoneIsDoneForThoseWhoComeLater(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		all := items(6)
		require.Equal(t, 6, does(v, "a", all))
		require.Empty(t, v.Children(groupPath+"/zkgroup/working"))
		for range 2 {
			time.Sleep(29 * time.Minute)
			require.Zero(t, does(v, "a", all), "it is kept for an hour, whoever looks")
		}
		time.Sleep(3 * time.Minute)
		require.Equal(t, 6, does(v, "a", all), "it was kept for an hour")
		time.Sleep(time.Minute)
		require.Equal(t, 6, does(v, "a", all, zkgroup.WithKeep(50*time.Second)), "the process says for how long")
		require.Zero(t, does(v, "a", all, zkgroup.WithKeep(50*time.Second)))
		require.Equal(t, 5, does(v, "a", all[1:]), "other items are another round")
		require.Equal(t, 6, does(v, "a", all), "of which there is one at a time")
		require.Equal(t, 0, does(v, "a", nil))
	})
}

// All members stop, or die, in the middle.
func TestAcceptance188ARoundWithoutMembersGoesOnWhereItWas(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		for name, end := range map[string]func(*assigned, *zksync.Session){
			"stop": func(a *assigned, s *zksync.Session) { a.stop(t); require.NoError(t, s.Close()) },
			"die":  func(a *assigned, s *zksync.Session) { dies(v, s); a.cancel(); time.Sleep(time.Minute) },
		} {
			c, s, all := newTally(), v.Session(), append(items(6), name)
			a := begins(v, s, name, all, c.run("a", always(time.Second)), until, zkgroup.WithConcurrency(1))
			time.Sleep(2500 * time.Millisecond)
			require.Equal(t, map[string]int{"item/0": 1, "item/1": 1}, c.counts())
			end(a, s)
			require.Equal(t, 5, does(v, "b", all), name)
		}
	})
}

// A member has died in the last moment, so its node is there when others begin to work on other items. They do all of them.
func TestAcceptance188ARoundThatIsDoneIsNotContinuedWithOtherItems(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s, recorded := v.Session(), 0
		id := s.ID()
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			switch {
			case q.Session != id || recorded < 3 && !(q.Op == zktest.Multi && strings.Contains(q.Path, "/round-")):
				return zktest.Verdict{}
			case recorded < 3:
				recorded++
				return zktest.Verdict{}
			}
			return zktest.Verdict{Fate: zktest.LoseRequest}
		})
		dead := begins(v, s, "dead", items(3), newTally().run("dead", always(time.Second)), until)
		time.Sleep(2 * time.Second)
		defer dead.cancel()
		go s.Close()
		begun := time.Now()
		require.Len(t, v.Children(groupPath+"/zkgroup/working"), 1)
		require.Equal(t, 4, does(v, "a", items(4)))
		require.Greater(t, time.Since(begun), time.Second, "when the dead member is gone")
	})
}

// Members without the option take part in a round, and do not end it.
func TestAcceptance188AMemberWithoutTheOptionDoesNotEndARoundThatIsKept(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		c, all := newTally(), items(8)
		plain := begins(v, v.Session(), "plain", all, c.run("plain", always(time.Second)))
		v.Quiet()
		other := begins(v, v.Session(), "until", all, c.run("until", always(time.Second)), until)
		other.ended(t)
		require.Equal(t, 8, c.total())
		require.Zero(t, does(v, "late", all), "while the plain one is there")
		plain.stop(t)
		require.Zero(t, does(v, "late", all), "when it has gone")
		require.Equal(t, 8, c.total())
		plain.begin(v, all, c.run("plain", always(0)))
		v.Quiet()
		plain.stop(t)
		require.Equal(t, 16, c.total(), "it begins a round of its own")
	})
}

func TestWrongOptionsOfAssign(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := zkgroup.New(v.Session(), groupPath)
		m := joins(v, g, "a", "")
		for text, opt := range map[string]zkgroup.AssignOption{
			"WithKeep(0s): it must be positive":         zkgroup.WithKeep(0),
			"WithKeep is for WithUntilDone":             zkgroup.WithKeep(time.Second),
			"WithConcurrency(0): it must be at least 1": zkgroup.WithConcurrency(0),
			"WithSettle(-1s): it must not be negative":  zkgroup.WithSettle(-time.Second),
		} {
			err := g.Assign(context.Background(), m, items(2), untilEnd, opt)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, text)
			require.ErrorContains(t, err, groupPath)
		}
	})
}
