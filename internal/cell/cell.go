package cell

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Cell is one value that several processes change. Below its base node, which is named by the type, there are
//
//	value           with the value as its data. Its version counts the changes
//	value/absent    while there is no value
//	writers         with one node for each writer: see package writers
//	open            the gate: see package gate
//	queue           where changes queue that were refused several times
//
// A change is one transaction. It sets the data of value at the version that the change was computed from. So it is
// applied only to that value; and the writer ensures that it is applied once, whatever becomes of the request.
// A Cell is safe for use by many goroutines.
type Cell struct {
	At *session.Access
	// Spare returns what to write in place of next, and what to do once it is written; nil for most types. It must not
	// change after the first use of the cell. founded is the czxid of the cell; 0 if it is not known.
	Spare func(next Content) (Content, func(e *zkconn.Epoch, founded int64))

	base  string // on the servers
	terms record.Terms[struct{}]
	gate  *gate.Gate
	empty bool                  // there is no value at first
	known atomic.Pointer[state] // the newest that this object has seen; nil before the first

	mu      sync.Mutex
	waiting []*Call // that no batch has yet
	batch   *batch  // the one under way
	running bool    // a goroutine makes batches
}

// Content is a value as the servers keep it.
type Content struct {
	Data    []byte
	OK      bool  // there is a value
	Version int64 // of the node: it counts the changes. It is unwritten if the servers have never had the content
	Founded int64 // the czxid of the node; 0 if this object made it and has not read it since
}

// unwritten is no version of a node.
const unwritten = math.MinInt64

func (c Content) equal(o Content) bool { return c.OK == o.OK && bytes.Equal(c.Data, o.Data) }

// ContentOf is the content of a node with this data and Stat.
func ContentOf(data []byte, stat *zk.Stat) Content {
	return Content{data, stat.NumChildren == 0, int64(stat.Version), stat.Czxid}
}

// state is the content at one time.
type state struct {
	Content
	life string // of the cell: see [record.WritersOf]
}

// before reports whether s was the state before t was.
func (s state) before(t state) bool {
	if s.Founded != t.Founded && s.Founded != 0 && t.Founded != 0 {
		return s.Founded < t.Founded
	}
	return int32(s.Version)-int32(t.Version) < 0 // also when the version has passed its greatest number
}

// removed is the error when nodes are missing that only an external removal deletes.
func (c *Cell) removed() error {
	return errs.Broken("the "+layout.Word(c.terms.Type), "nodes of it were removed externally; remove the rest, too")
}

// New names the cell of a type, a name of package layout, at a path. Without a value at first it is empty; else the
// first value has no bytes. It does no I/O. If at reports a misuse, so does every call.
func New(at *session.Access, kind string, empty bool) *Cell {
	c := &Cell{At: at, empty: empty}
	if at.Misuse() != nil {
		return c
	}
	c.base = at.Full(at.Path) + "/" + kind
	c.gate = &gate.Gate{Node: c.base + "/open", ACL: at.ACL(), Line: at.Queue("/"+kind+"/queue", queue.KindLock)}
	c.gate.Line.Base = c.base
	c.terms.Base, c.terms.ACL, c.terms.Type = c.base, at.ACL(), kind
	c.terms.Lives = true
	c.terms.First = func() (struct{}, []string) {
		nodes := []string{record.WritersOf(c.base, ""), c.gate.Node, c.Node()}
		if empty {
			nodes = append(nodes, c.absent())
		}
		return struct{}{}, nodes
	}
	c.terms.Check = func(struct{}) error { return nil }
	return c
}

// Base is the base node, on the servers, which does not change. Its czxid is that of the cell, as all nodes are made with it.
func (c *Cell) Base() string { return c.base }

// Node is the node with the value, on the servers.
func (c *Cell) Node() string   { return c.base + "/value" }
func (c *Cell) absent() string { return c.Node() + "/absent" }

// Shown is the path of the node as the session's user knows it.
func (c *Cell) Shown() string { return c.At.Path + "/" + c.terms.Type + "/value" }

// look reads the content as this server knows it. A server may know less than this object, which has seen more in an
// earlier session: then look has it catch up first. So what an object reads never goes back.
func (c *Cell) look(ctx context.Context, e *zkconn.Epoch) (s state, there bool, err error) {
	floor := c.known.Load()
	for synced := false; ; synced = true {
		s, there, err = c.get(ctx, e, floor)
		if err != nil {
			return s, false, err
		}
		if floor == nil || there && !s.before(*floor) {
			if there {
				c.learn(s)
			}
			return s, there, nil
		}
		if synced { // the node was removed externally, and perhaps there is a new one
			if c.known.Store(nil); there {
				c.known.Store(&s)
			}
			return s, there, nil
		}
		if err := record.Synced(ctx, e, c.Node()); err != nil {
			return s, false, err
		}
	}
}

// get reads the state. The life of a cell that is known need not be read.
func (c *Cell) get(ctx context.Context, e *zkconn.Epoch, known *state) (s state, there bool, err error) {
	var data []byte
	var stat *zk.Stat
	life, same := "", false
	if known != nil && known.Founded != 0 {
		data, stat, err = e.Get(ctx, c.Node())
		life, same = known.life, err != nil || stat.Czxid == known.Founded
	}
	if !same {
		data, stat, life, err = record.ReadAlive(ctx, e, c.base, c.Node())
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return s, false, nil
	case err != nil:
		return s, false, err
	}
	return state{ContentOf(data, stat), life}, true, nil
}

// learn keeps s unless something newer is known.
func (c *Cell) learn(s state) {
	for known := c.known.Load(); known == nil || !s.before(*known); known = c.known.Load() {
		if c.known.CompareAndSwap(known, &s) {
			return
		}
	}
}

// Load reads the content for the caller of op. It makes nothing. Of a path that was never used the version is 0.
func (c *Cell) Load(ctx context.Context, op string) (now Content, err error) {
	err = c.At.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		for again := false; ; again = true {
			s, there, err := c.look(ctx, e)
			if now = s.Content; err != nil || there {
				return err
			}
			now = Content{}
			// The path was not used, or it belongs to another type, or the nodes are being made.
			_, made, err := c.terms.Peek(ctx, e)
			switch {
			case err != nil || !made:
				return err
			case again:
				return c.removed()
			}
		}
	})
	return now, err
}

// Known is the newest content that this object has seen; ok is false if that is none.
func (c *Cell) Known() (now Content, ok bool) {
	if known := c.known.Load(); known != nil {
		return known.Content, true
	}
	return now, false
}

// present is what this object knows to have been the state, or reads.
func (c *Cell) present(ctx context.Context, e *zkconn.Epoch) (state, error) {
	if known := c.known.Load(); known != nil {
		return *known, nil
	}
	return c.fresh(ctx, e)
}

// Make makes the nodes if there are none, for the caller of op, and has this server catch up with what this object knows.
func (c *Cell) Make(ctx context.Context, op string) error {
	return c.At.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		_, err := c.fresh(ctx, e)
		return err
	})
}

// fresh reads the state, and makes the nodes if there are none.
func (c *Cell) fresh(ctx context.Context, e *zkconn.Epoch) (state, error) {
	for again := false; ; again = true {
		s, there, err := c.look(ctx, e)
		if err != nil || there {
			return s, err
		}
		v, err := c.terms.Make(ctx, e)
		switch {
		case err != nil:
			return s, err
		case v.New:
			s = state{Content: Content{OK: !c.empty}, life: v.Life}
			c.learn(s)
			return s, nil
		case again: // the base node is there, and it was made with the others
			return s, c.removed()
		}
	}
}
