package zksync

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Found by review: permits that a waiter forgets are missing from the sum that decides.
func TestAWaiterForPermitsForgetsNobodyAhead(t *testing.T) {
	self := entry{name: "self", kind: KindPermit, weight: 1}
	p := &place{q: &queue{grant: weightedPolicy(10)}, self: self}
	var ahead []entry
	for i, w := range []int64{1, 1, 9, 1} {
		ahead = append(ahead, entry{name: string(rune('a' + i)), kind: KindPermit, weight: w})
	}
	kept, more := p.near(ahead)
	left, err := p.without(kept, []string{"d"}, more)
	require.False(t, err == nil && len(p.q.grant(left, self)) == 0, "1+1+9+1 permits of 10")
}

func TestAWaiterForALockRemembersOnlyWhatIsNear(t *testing.T) {
	p := &place{q: &queue{grant: mutexPolicy}, self: entry{name: "self", kind: KindLock}}
	var ahead []entry
	for _, n := range []string{"a", "b", "c", "d"} {
		ahead = append(ahead, entry{name: n, kind: KindLock})
	}
	kept, more := p.near(ahead)
	require.True(t, more)
	require.Equal(t, ahead[2:], kept)
	_, err := p.without(kept, []string{"c", "d"}, more)
	require.ErrorIs(t, err, errList, "a and b may be there")
	kept, more = p.near(ahead[:2])
	require.False(t, more)
	left, err := p.without(kept, []string{"b", "a"}, more)
	require.NoError(t, err)
	require.Empty(t, left)
}
