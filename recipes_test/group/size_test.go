package zkgroup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
)

// The requests grow as the members do, and an idle group makes none.
func TestTheRequestsOfManyMembersGrowLinearly(t *testing.T) {
	for _, n := range []int{100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				g, other := zkgroup.New(proving.Calm(v), groupPath), zkgroup.New(proving.Calm(v), groupPath)
				joins(v, g, "first", "")
				members(v, other)
				w := watches(t.Context(), t, other)
				v.Quiet()
				v.Costs(n*2+n, func() {
					for i := range n {
						joins(v, g, fmt.Sprint("m", i), "data")
						v.Quiet()
					}
				}, "two for each, and one for the watcher")
				w.mu.Lock()
				require.Len(t, w.views, n+1)
				w.views = nil
				w.mu.Unlock()
				v.Costs(2+n+1, func() { members(v, other) })
				v.Costs(0, func() { time.Sleep(time.Minute) }, "an idle group makes no traffic")
			})
		})
	}
}

// A death moves the items of the dead, exactly at the end of its session, and no others.
func TestTheItemsOfADeadMemberRunElsewhereWhenItsSessionEnds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		book := newLedger(t)
		s := v.Session()
		for i, g := range []*zkgroup.Group{zkgroup.New(s, groupPath), zkgroup.New(v.Session(), groupPath), zkgroup.New(v.Session(), groupPath)} {
			m := joins(v, g, fmt.Sprint("w", i), "")
			go func() { _ = g.Assign(context.Background(), m, items(64), book.run(m.ID())) }()
		}
		v.Quiet()
		require.Equal(t, 64, book.owned())
		who, moves := book.owners()
		dies(v, s)
		time.Sleep(s.Timeout() + time.Second)
		require.Equal(t, 64, book.owned())
		now, later := book.owners()
		moved := 0
		for item, id := range who {
			if id == "w0" {
				moved++
				require.NotEqual(t, "w0", now[item])
				continue
			}
			require.Equal(t, id, now[item], "an item of another has moved")
		}
		require.Equal(t, moved, later-moves)
		require.NotZero(t, moved)
	})
}
