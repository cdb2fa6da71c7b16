package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// watching is what a waiter hears that watches these nodes.
func watching(names ...string) *events {
	ev := newEvents("self")
	for _, n := range names {
		ev.subscribe(n)
	}
	return ev
}

// Found by review: permits that a waiter forgets are missing from the sum that decides.
func TestAWaiterForPermitsForgetsNobodyAhead(t *testing.T) {
	self := Entry{Name: "self", Kind: KindPermit, Weight: 1}
	p := &Ticket{queue: &Queue{Policy: WeightedPolicy(10)}, Entry: self}
	var ahead []Entry
	for i, w := range []int64{1, 1, 9, 1} {
		ahead = append(ahead, Entry{Name: string(rune('a' + i)), Kind: KindPermit, Weight: w})
	}
	v := p.near(ahead)
	left, err := p.without(v, []string{"d"}, watching("c", "d"))
	require.False(t, err == nil && len(left.blockers) == 0, "1+1+9+1 permits of 10")
}

func TestAWaiterForALockRemembersOnlyWhatIsNear(t *testing.T) {
	p := &Ticket{queue: &Queue{}, Entry: Entry{Name: "self", Kind: KindLock}}
	var ahead []Entry
	for _, n := range []string{"a", "b", "c", "d"} {
		ahead = append(ahead, Entry{Name: n, Kind: KindLock})
	}
	v := p.near(ahead)
	require.True(t, v.more)
	require.Equal(t, ahead[2:], v.ahead)
	_, err := p.without(v, []string{"c", "d"}, watching("c", "d"))
	require.ErrorIs(t, err, errList, "a and b may be there")
	v = p.near(ahead[:2])
	require.False(t, v.more)
	left, err := p.without(v, []string{"b", "a"}, watching("a", "b"))
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
	p := &Ticket{queue: q, Entry: Entry{Name: "self", Kind: KindLock}}
	var ahead []Entry
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		ahead = append(ahead, Entry{Name: n, Kind: KindLock})
	}
	v := p.near(ahead)
	left, err := p.without(v, []string{"e"}, watching("c", "d", "e"))
	require.False(t, err == nil && len(left.blockers) == 0, "four are ahead, where two may be")
}
