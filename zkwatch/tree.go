package zkwatch

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Kind is the kind of an [Event].
type Kind int

const (
	// Created is a node that was there at the beginning, or was made.
	Created Kind = iota + 1
	// Changed is new data.
	Changed
	// Deleted is the end of a node, also of one that is made again.
	Deleted
	// Initialized comes once, after everything that was there at the beginning.
	Initialized
)

func (k Kind) String() string {
	if k < Created || k > Initialized {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return [...]string{Created: "created", Changed: "changed", Deleted: "deleted", Initialized: "initialized"}[k]
}

// Event is a change of a tree. A deleted node has its last state, with OK false.
type Event struct {
	Kind Kind
	Node Node // of Initialized the tree's Path
}

// Tree is a copy in memory of a node, which need not exist, and everything below it: Curator's TreeCache. It
// leaves out nodes that the session may not read.
type Tree struct {
	at    *session.Access
	cache *follow.Cache
}

// option is an option that only NewTree takes.
type option struct {
	zksync.Option
	set func(*follow.Part) error
}

// WithDepth makes a Tree follow n levels below its path: 0 is the node itself, 1 also its children. The
// default is all levels.
func WithDepth(n int) zksync.Option {
	return option{session.Misplaced("WithDepth"), func(p *follow.Part) (err error) {
		if p.Depth = n; n < 0 {
			err = errs.Misuse("a tree of %d levels below its path; give 0 or more", n)
		}
		return err
	}}
}

// WithFilter leaves out the nodes below the tree's path for which f returns false, with everything below them: they are not
// read. f must always return the same for a path, and must not wait.
func WithFilter(f func(path string) bool) zksync.Option {
	return option{session.Misplaced("WithFilter"), func(p *follow.Part) (err error) {
		if p.Filter = f; f == nil {
			err = errs.Misuse("WithFilter without a function")
		}
		return err
	}}
}

// NewTree names the tree at path. Its options are WithDepth and WithFilter.
func NewTree(s *zksync.Session, path string, opts ...zksync.Option) *Tree {
	own, rest := session.Own[option](opts)
	at := session.NewViewAccess("zkwatch", (*session.Session)(s), path, rest).Without(append([]string{"WithACL", "WithName"}, session.OfHolds...)...)
	part := follow.Part{Depth: follow.Unbounded}
	for _, o := range own {
		at.Refuse(o.set(&part))
	}
	if f := part.Filter; f != nil {
		part.Filter = func(full string) bool { return f(at.Local(full)) }
	}
	return &Tree{at: at, cache: follow.NewCache(at, at.Full(path), part)}
}

// made is t, which NewTree has made. Of a zero or nil value it panics.
func (t *Tree) made() *Tree {
	if t == nil || t.at == nil {
		panic(errs.Unmade("zkwatch", "a Tree", "NewTree"))
	}
	return t
}

// Start begins to follow the tree, and returns when all of it is known. If ctx ends first, the tree goes on.
// After Close of the tree the error is zksync.ErrMisuse.
func (t *Tree) Start(ctx context.Context) error {
	return t.made().at.Named("start", t.cache.Start(ctx))
}

// Close ends the tree. The copy can still be read. Loops over its changes end.
func (t *Tree) Close() error {
	t.made().cache.Close()
	return nil
}

// Age is how old the copy may be: 0 while it hears of changes, else the time since the newest answer of the
// servers; before Start has returned and after Close it grows. A silent connection is noticed after half a
// session timeout.
func (t *Tree) Age() time.Duration { return t.made().cache.Age() }

// Get returns the node at path, if the copy has it. Do not modify the data.
func (t *Tree) Get(path string) (Node, bool) {
	n, there := t.made().cache.Get(t.at.Full(path))
	return nodeOf(path, n.Data, n.Stat), there
}

// Children returns the sorted names of the node's children; nil if the copy has no such node.
func (t *Tree) Children(path string) []string { return t.made().cache.Children(t.at.Full(path)) }

// Changes is a loop over the changes of the tree: what is there, parents before their children, then
// Initialized, then every later change. Applied in order, they give what Get and Children show. A slow loop
// misses nothing: it holds events in memory.
func (t *Tree) Changes(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for ev, err := range t.made().cache.Changes(ctx) {
			if err != nil {
				yield(Event{}, t.at.Named("watch", err))
				return
			}
			if ev.Kind > follow.Initialized {
				continue // the ends and beginnings of outages
			}
			now := Event{Kind: Kind(ev.Kind), Node: nodeOf(t.at.Local(ev.Path), ev.Data, ev.Stat)} // both packages have the same kinds
			now.Node.OK = now.Node.OK && now.Kind != Deleted
			if !yield(now, nil) {
				return
			}
		}
	}
}
