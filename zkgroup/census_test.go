package zkgroup

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/follow"
)

// Several changes of one member are told as one where they come together, as after a lost connection.
func TestAViewTellsWhatHasBecomeOfAMember(t *testing.T) {
	member := func(data string) []Member { return []Member{{"a", []byte(data)}} }
	type events []follow.Event
	made := func(data string) follow.Event {
		return follow.Event{Kind: follow.Created, Path: "/m/a", Data: []byte(data)}
	}
	changed := func(data string) follow.Event {
		return follow.Event{Kind: follow.Changed, Path: "/m/a", Data: []byte(data)}
	}
	gone := follow.Event{Kind: follow.Deleted, Path: "/m/a"}
	for name, x := range map[string]struct {
		before, then events
		told         bool
		view         View
	}{
		"came and went":         {nil, events{made("1"), gone}, false, View{}},
		"came and changed":      {nil, events{made("1"), changed("2")}, true, View{Joined: member("2")}},
		"changed twice":         {events{made("1")}, events{changed("2"), changed("3")}, true, View{Updated: member("3")}},
		"changed and went":      {events{made("1")}, events{changed("2"), gone}, true, View{Left: member("2")}},
		"went and came":         {events{made("1")}, events{gone, made("2")}, true, View{Left: member("1"), Joined: member("2")}},
		"went, came, and went":  {events{made("1")}, events{gone, made("2"), gone}, true, View{Left: member("1")}},
		"went, came, and so on": {events{made("1")}, events{gone, made("2"), gone, made("3")}, true, View{Left: member("1"), Joined: member("3")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCensus()
			for _, ev := range x.before {
				c.heard(ev, "/m/")
			}
			_, ok := c.heard(follow.Event{Kind: follow.Initialized}, "/m/")
			require.True(t, ok)
			c.heard(follow.Event{Kind: follow.Interrupted}, "/m/")
			for _, ev := range x.then {
				c.heard(ev, "/m/")
			}
			v, told := c.heard(follow.Event{Kind: follow.Resumed}, "/m/")
			require.Equal(t, x.told, told)
			require.ElementsMatch(t, x.view.Joined, v.Joined)
			require.ElementsMatch(t, x.view.Left, v.Left)
			require.ElementsMatch(t, x.view.Updated, v.Updated)
		})
	}
}
