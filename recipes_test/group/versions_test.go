package zkgroup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
)

// A worker of an earlier version does not say that it divides evenly. As long as it is there, all divide as it does, so each item has one
// member. When it has gone, the division is even.
func TestAcceptance192MembersOfTwoVersionsDivideAlike(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		h, all := &holders{now: map[string]string{}}, items(40)
		ids := []string{"a", "b", "old"}
		there := map[string]*assigned{}
		for _, id := range ids {
			there[id] = begins(v, v.Session(), id, all, h.run(id))
			v.Quiet()
		}
		node := groupPath + "/zkgroup/working/old"
		digest, rest, _ := strings.Cut(v.Data(node), "/")
		require.Equal(t, "even", rest)
		v.Server.Set(node, []byte(digest))
		v.Quiet()
		plain := rounds.NewDivision(all)
		for _, id := range ids {
			plain.Add(id, rounds.Part{List: rounds.ListOf(all)})
		}
		plain.Settle()
		uneven := false
		for i, item := range all {
			require.True(t, plain.Owns(h.get()[item], i), item)
		}
		for _, n := range h.loads() {
			uneven = uneven || n > 14
		}
		require.True(t, uneven, "%v", h.loads())
		there["old"].stop(t)
		v.Quiet()
		require.Equal(t, map[string]int{"a": 20, "b": 20}, h.loads())
	})
}

// The State counts the items of the present round, and of one that is kept.
func TestTheStateOfAGroupCountsItsItems(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		stop := make(chan struct{})
		c := newTally()
		a := begins(v, v.Session(), "a", items(3), c.run("a", func(item string) time.Duration {
			if item == "item/1" {
				<-stop
			}
			return 0
		}), until)
		v.Eventually(func() bool { return c.total() == 2 }, "two are done")
		v.Quiet()
		says := func(detail string, items, done int64) {
			t.Helper()
			v.Eventually(func() bool {
				st, err := a.g.State(t.Context())
				return err == nil && st.Detail == detail && st.Items == items && st.Done == done && st.Members == 1
			}, "the state is %s", detail)
		}
		says("1 member, 2 of 3 items done", 3, 2)
		close(stop)
		a.ended(t)
		says("1 member, 3 of 3 items done", 3, 3)
	})
}
