package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// watching is what a waiter hears that watches these nodes.
func watching(q *Queue, self Entry, names ...string) *contest {
	ev := newEvents("self", "")
	for _, n := range names {
		ev.subscribe(n)
	}
	c := newContest(&Ticket{queue: q, Entry: self})
	c.ev = ev
	return c
}

// Found by review: permits that a waiter forgets are missing from the sum that decides.
func TestAWaiterForPermitsForgetsNobodyAhead(t *testing.T) {
	self := Entry{Name: "self", Kind: KindPermit, Weight: 1}
	c := watching(&Queue{Kind: KindPermit, Policy: WeightedPolicy(10)}, self, "c", "d")
	var ahead []Entry
	for i, w := range []int64{1, 1, 9, 1} {
		ahead = append(ahead, Entry{Name: string(rune('a' + i)), Kind: KindPermit, Weight: w})
	}
	left, err := c.without(c.near(ahead), []string{"d"})
	require.False(t, err == nil && len(left.blockers) == 0, "1+1+9+1 permits of 10")
}

func TestAWaiterForALockRemembersOnlyWhatIsNear(t *testing.T) {
	self := Entry{Name: "self", Kind: KindLock}
	c := watching(&Queue{}, self, "c", "d")
	var ahead []Entry
	for _, n := range []string{"a", "b", "c", "d"} {
		ahead = append(ahead, Entry{Name: n, Kind: KindLock})
	}
	v := c.near(ahead)
	require.True(t, v.more)
	require.Equal(t, ahead[2:], v.ahead)
	_, err := c.without(v, []string{"c", "d"})
	require.ErrorIs(t, err, errList, "a and b may be there")
	c = watching(&Queue{}, self, "a", "b")
	v = c.near(ahead[:2])
	require.False(t, v.more)
	left, err := c.without(v, []string{"b", "a"})
	require.NoError(t, err)
	require.Empty(t, left.ahead)
}

func TestUnderAPolicyOfItsOwnAWaiterForgetsNobodyAhead(t *testing.T) {
	q := &Queue{Policy: func(ahead []Entry, _ Entry) []Entry {
		if len(ahead) < 3 {
			return nil
		}
		return ahead[len(ahead)-3:]
	}}
	c := watching(q, Entry{Name: "self", Kind: KindLock}, "c", "d", "e")
	var ahead []Entry
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		ahead = append(ahead, Entry{Name: n, Kind: KindLock})
	}
	left, err := c.without(c.near(ahead), []string{"e"})
	require.False(t, err == nil && len(left.blockers) == 0, "four are ahead, where two may be")
}
