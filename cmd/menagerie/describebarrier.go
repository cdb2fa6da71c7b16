package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// This file describes the meeting points: barriers, latches, phasers, wait groups.

// child reads a child of n; nil if there is none.
func (l *look) child(ctx context.Context, n *node, name string) (*node, error) {
	return l.node(ctx, below(n.path, name))
}

// size is the number of a node's children; 0 for a nil node.
func size(n *node) int64 {
	if n == nil {
		return 0
	}
	return int64(len(n.children))
}

func children(n *node) []string {
	if n == nil {
		return nil
	}
	return n.children
}

func describeLatch(ctx context.Context, l *look, n *node, o *object) error {
	type terms struct {
		Total int64
		Open  bool
	}
	st := decoded[terms](n)
	counts, err := l.child(ctx, n, "counts")
	if err != nil {
		return err
	}
	counted, closed := min(size(counts), st.Total), fmt.Sprintf("closed-of-%d", st.Total)
	o.of(counted, st.Total)
	there := slices.Contains(n.children, closed)
	if !st.Open && !there { // it may have opened between the two reads
		if n, err = l.node(ctx, n.path); err != nil || n == nil {
			return err
		}
		st = decoded[terms](n)
	}
	switch {
	case st.Open:
		o.State, o.Detail = "open", fmt.Sprintf("open: all of %s counted down", plural(st.Total, "event"))
	case there:
		o.State, o.Detail = "closed", fmt.Sprintf("closed: %d of %s counted down", counted, plural(st.Total, "event"))
	default:
		o.State, o.Detail = "broken", fmt.Sprintf("broken: %s was removed by hand", closed)
	}
	return nil
}

func describeBarrier(ctx context.Context, l *look, n *node, o *object) error {
	st := decoded[struct {
		Parties, Generation int64
		Broken              bool
	}](n)
	dir, err := l.child(ctx, n, fmt.Sprintf("parties-%d", st.Generation))
	if err != nil {
		return err
	}
	o.of(size(dir), st.Parties)
	o.State, o.Detail = "waiting", fmt.Sprintf("%d of %d have arrived", size(dir), st.Parties)
	switch {
	case st.Broken:
		o.State, o.Detail = "broken", "broken: "+o.Detail
	case size(dir) == 0:
		o.State = "idle"
	}
	names := slices.SortedFunc(slices.Values(children(dir)), func(a, b string) int { return cmp.Compare(sequence(a), sequence(b)) })
	return l.parties(ctx, dir, names, "party", o)
}

// sequence is the number that the servers have appended to a name.
func sequence(name string) string { return name[max(0, len(name)-10):] }

func describeDouble(ctx context.Context, l *look, n *node, o *object) error {
	total := decoded[struct{ Parties int64 }](n).Parties
	dir, err := l.child(ctx, n, "parties")
	if err != nil {
		return err
	}
	o.of(size(dir), total)
	o.State, o.Detail = "open", fmt.Sprintf("open: %d of %d have not left", size(dir), total)
	if slices.Contains(n.children, fmt.Sprintf("gathering-%d", total)) {
		o.State, o.Detail = "waiting", fmt.Sprintf("%d of %d have arrived", size(dir), total)
		if size(dir) == 0 {
			o.State = "idle"
		}
	}
	return l.parties(ctx, dir, children(dir), "party", o)
}

func describePhaser(ctx context.Context, l *look, n *node, o *object) error {
	st := decoded[struct {
		Phase      int64
		Terminated bool
	}](n)
	if st.Terminated || !slices.Contains(n.children, "open") {
		o.State, o.Detail = "terminated", fmt.Sprintf("terminated in phase %d", st.Phase)
		return nil
	}
	coming, err := l.child(ctx, n, fmt.Sprintf("phase-%d", st.Phase))
	if err != nil {
		return err
	}
	arrived, err := l.child(ctx, n, fmt.Sprintf("phase-%d", st.Phase+1))
	if err != nil {
		return err
	}
	action, err := l.child(ctx, n, "action")
	if err != nil {
		return err
	}
	o.of(size(arrived), size(arrived)+size(coming))
	o.State, o.Detail = "waiting", fmt.Sprintf("phase %d: %d of %d have arrived", st.Phase, size(arrived), size(arrived)+size(coming))
	switch {
	case size(action) > 0:
		o.State = "advancing"
		o.Detail += ", and the function of the advance runs"
	case size(arrived)+size(coming) == 0:
		o.State, o.Detail = "idle", fmt.Sprintf("phase %d: nobody is registered", st.Phase)
	}
	if err := l.parties(ctx, arrived, children(arrived), "party", o); err != nil {
		return err
	}
	first := len(o.Entries)
	if err := l.parties(ctx, coming, children(coming), "party", o); err != nil {
		return err
	}
	for i := range o.Entries[first:] {
		o.Entries[first+i].State = "working" // has still to arrive
	}
	return nil
}

// record is a wait group's record of the members that one process added.
type record struct {
	N     int64
	Taken map[string]int64
}

func (r record) left() int64 {
	for _, taken := range r.Taken {
		r.N -= taken
	}
	return max(r.N, 0)
}

func describeWaitGroup(ctx context.Context, l *look, n *node, o *object) error {
	o.State, o.Detail = "done", "no member is left"
	round := &node{path: below(n.path, "round")}
	members, err := l.child(ctx, round, "members")
	if err != nil {
		return err
	}
	alive, err := l.child(ctx, round, "alive") // after the records, or what is added in between would look dead
	if err != nil {
		return err
	}
	var living, dead int64
	if members != nil {
		err := l.each(ctx, members, members.children, func(c *node) error {
			var r record
			if json.Unmarshal(c.data, &r) != nil || r.left() == 0 {
				return nil
			}
			row := party(c, "member", "living", len(o.Entries))
			if slices.Contains(children(alive), c.name()) {
				living += r.left()
			} else {
				dead += r.left()
				row.State = "dead"
			}
			o.Entries = append(o.Entries, row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if living+dead > 0 {
		o.of(living, living+dead)
		o.State, o.Detail = "waiting", plural(living, "member")+" not done"
	}
	if dead > 0 {
		o.Detail += fmt.Sprintf(", %d dead", dead)
	}
	if slices.Contains(n.children, "dead") {
		o.Detail += "; members died in a round before"
	}
	return nil
}
