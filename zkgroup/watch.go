package zkgroup

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// View is the group after a change, sorted by ID.
type View struct {
	Members []Member
	// Joined, Left and Updated have changed since the view before. A member that has left and joined again
	// may be in both. Left has the last data.
	Joined, Left, Updated []Member
}

// Watch is a loop over the states of the group: the present one, with all members in Joined, and then one
// after every change, or several. Applied in order, they give the members on the servers.
func (g *Group) Watch(ctx context.Context) iter.Seq2[View, error] {
	return func(yield func(View, error) bool) {
		err := g.checked().at.Run(ctx, "watch", func(ctx context.Context, e *zkconn.Epoch) error {
			_, err := g.exists(ctx, e)
			return err
		})
		if err != nil {
			yield(View{}, err)
			return
		}
		c := newCensus()
		for ev, err := range follow.Tree(ctx, g.at, g.members()) {
			if err != nil {
				yield(View{}, g.at.Named("watch", err))
				return
			}
			if v, ok := c.heard(ev, g.members()+"/"); ok && !yield(v, nil) {
				return
			}
		}
	}
}

// census makes views of events.
type census struct {
	all   map[string][]byte
	batch bool // more events belong to the next view
	first bool
	next  View
}

func newCensus() *census { return &census{all: map[string][]byte{}, batch: true, first: true} }

// heard takes an event, and returns a view if one is complete.
func (c *census) heard(ev follow.Event, dir string) (View, bool) {
	switch ev.Kind {
	case follow.Interrupted:
		c.batch = true
	case follow.Initialized, follow.Resumed:
		c.batch = false
	default:
		name, ok := strings.CutPrefix(ev.Path, dir)
		if !ok || strings.Contains(name, "/") {
			return View{}, false
		}
		if id, ok := layout.Unescape(name); ok {
			c.changed(ev.Kind, id, ev.Data)
		}
	}
	nothing := len(c.next.Joined)+len(c.next.Left)+len(c.next.Updated) == 0
	if c.batch || nothing && !c.first {
		return View{}, false
	}
	v := c.next
	c.next, c.first = View{}, false
	v.Members = make([]Member, 0, len(c.all))
	for id, data := range c.all {
		v.Members = append(v.Members, Member{id, data})
	}
	for _, l := range [][]Member{v.Members, v.Joined, v.Left, v.Updated} {
		slices.SortFunc(l, byID)
	}
	return v, true
}

// changed adds an event of a member to the next view. There several changes of a member are one: a member that came and left
// again does not appear, and one that came or changed appears with its last data.
func (c *census) changed(kind follow.Kind, id string, data []byte) {
	joined := drop(&c.next.Joined, id)
	drop(&c.next.Updated, id)
	switch {
	case kind == follow.Deleted && !joined:
		c.next.Left = append(c.next.Left, Member{id, c.all[id]})
	case kind == follow.Created, kind == follow.Changed && joined:
		c.next.Joined = append(c.next.Joined, Member{id, data})
	case kind == follow.Changed:
		c.next.Updated = append(c.next.Updated, Member{id, data})
	}
	if kind == follow.Deleted {
		delete(c.all, id)
		return
	}
	c.all[id] = data
}

// drop removes a member, and reports whether it was there.
func drop(ms *[]Member, id string) bool {
	n := len(*ms)
	*ms = slices.DeleteFunc(*ms, func(m Member) bool { return m.ID == id })
	return len(*ms) < n
}
