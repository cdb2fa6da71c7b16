package zkgroup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
)

// A member that has done its share early does not list many items all the time, and still returns soon after the last one.
func TestAMemberThatWaitsForManyItemsReturnsSoonAfterTheLast(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		all := make([]string, 4000)
		for i := range all {
			all[i] = fmt.Sprint("item-", i)
		}
		c := newTally()
		begun := time.Now()
		slow := begins(v, v.Session(), "slow", all, c.run("slow", always(2*time.Second)), until)
		quick := begins(v, v.Session(), "quick", all, c.run("quick", always(time.Second)), until)
		slow.ended(t)
		v.Within(begun, 2500*time.Millisecond, "the end of the slow one")
		quick.ended(t)
		v.Within(begun, 2700*time.Millisecond, "the end of the quick one")
		require.Equal(t, map[string]int{"slow": 2000, "quick": 2000}, c.by)
	})
}
