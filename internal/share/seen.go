package share

import (
	"slices"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/waitfor"
)

// cycle is a cycle through the wait of g in what was read; nil if there is none.
func (v *scan) cycle() *found {
	all, own := v.all()
	if own < 0 || all[own].State == queue.Held {
		return nil
	}
	c, there := waitfor.New(all).Through(own)
	if !there {
		return nil
	}
	return &found{c, all[own]}
}

// all are the entries of all queues, and the index of the wait of g; -1 if it is not among them.
func (v *scan) all() (all []waitfor.Entry, own int) {
	paths := make([]string, 0, len(v.seen))
	for p := range v.seen {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		all = append(all, v.entries(p)...)
	}
	return all, slices.IndexFunc(all, v.g.is)
}

// entries are those of one queue, with the waits of this session that have no node of their own, behind the entries that they wait for.
func (v *scan) entries(p string) []waitfor.Entry {
	s := v.seen[p]
	if s == nil {
		return nil
	}
	all := slices.Clone(s.entries)
	for _, g := range slices.Backward(waitsOf(v.g.s.at.Session).list()) {
		name, own := g.standing()
		at := slices.IndexFunc(all, func(e waitfor.Entry) bool { return name != "" && e.Node == g.s.q.Shown+"/"+name })
		switch {
		case g.place() != p || at < 0:
		case own: // what was released since its entry was made is not held any more
			all[at].Under = g.under()
		default:
			all = slices.Insert(all, at+1, g.local())
		}
	}
	return all
}

// under is what the caller still holds.
func (g *guard) under() string {
	return node.FormatUnder(tokens(slices.DeleteFunc(slices.Clone(g.held), func(l *lease.Lease) bool { return l.Err() != nil })))
}

// local is the wait of g as an entry without a node.
func (g *guard) local() waitfor.Entry {
	e := waitfor.Entry{Path: g.place()}
	e.Kind, e.State, e.Owner = g.s.q.Kind, queue.Waiting, g.s.at.Content(node.Content{}).Owner
	e.Session, e.Since, e.Under, e.Token.Seq = g.s.at.Session.ID(), g.began, g.under(), g.number
	return e
}

// is reports whether e is the wait of g.
func (g *guard) is(e waitfor.Entry) bool {
	name, own := g.standing()
	if own {
		return e.Node == g.s.q.Shown+"/"+name
	}
	return e.Node == "" && e.Path == g.place() && e.Token.Seq == g.number
}
