package zkgroup_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zktest"
)

// A member that has done its share early does not list many items all the time, and still returns soon after the last one.
func TestAMemberThatWaitsForManyItemsReturnsSoonAfterTheLast(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		all := make([]string, 1000)
		for i := range all {
			all[i] = fmt.Sprint("item-", i)
		}
		c := newTally()
		begun, locks := time.Now(), atomic.Int64{}
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && strings.HasPrefix(q.Path, groupPath+"/zkgroup/items/") {
				locks.Add(1)
			}
			return zktest.Verdict{}
		})
		slow := begins(v, v.Session(), "slow", all, c.run("slow", always(2*time.Second)), until)
		quick := begins(v, v.Session(), "quick", all, c.run("quick", always(time.Second)), until)
		time.Sleep(1500 * time.Millisecond) // what they have locked before they knew of each other does not count
		locks.Store(0)
		slow.ended(t)
		v.Within(begun, 2500*time.Millisecond, "the end of the slow one")
		quick.ended(t)
		v.Within(begun, 2700*time.Millisecond, "the end of the quick one")
		require.Equal(t, map[string]int{"slow": 500, "quick": 500}, c.by)
		require.Zero(t, locks.Load(), "the items of the one that has gone are not locked again")
		locks.Store(0)
		c = newTally()
		all = append(all, "one more")
		died := begins(v, v.Session(), "died", all, c.run("died", always(time.Second)), until, zkgroup.WithConcurrency(250))
		time.Sleep(3500 * time.Millisecond)
		died.stop(t)
		begins(v, v.Session(), "late", all, c.run("late", always(time.Second)), until).ended(t)
		require.Equal(t, map[string]int{"died": 750, "late": 251}, c.by)
		require.Less(t, locks.Load(), int64(len(all)+300), "what is done is not locked again")
	})
}
