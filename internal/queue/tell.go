package queue

import (
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// tell tells the Waiter the place of its entry, if that is known now.
func (c *contest) tell() {
	if c.w == nil || c.w.Sees == nil {
		return
	}
	if n, known := c.sight.place(); known {
		c.w.Sees(Place{n, c.t.ShownNode(), c.epoch.Number()})
	}
}

// reading is the one read of a wait whose entry has a traceparent: of the entry in its way.
type reading struct {
	name string
	call *zkconn.Call[zkconn.Content] // nil before
}

// learn reads the entry in the way, once in a wait, and does not wait for the answer. The servers answer in order: if the entry is
// still there then, the answer comes before the event of its departure. So a grant waits for nothing.
func (c *contest) learn(blockers []Entry) {
	if c.w == nil || c.t.Said.Trace == "" {
		return
	}
	c.last = strings.Clone(blockers[0].Name) // a part of the listing's text
	if c.read.call != nil {
		return
	}
	c.read = reading{c.last, zkconn.Start(c.epoch, zkconn.ReadData(c.q.Dir+"/"+c.last))}
}

// of is what the entry of this name says; nil if another was read. That one has left without a grant to ours.
func (r *reading) of(name string) *node.Content {
	if r.call == nil || r.name != name || !r.call.Answered() {
		return nil
	}
	got, err := r.call.Result()
	if err != nil {
		return nil
	}
	c := node.Decode(got.Data)
	return &c
}
