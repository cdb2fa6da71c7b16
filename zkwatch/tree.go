package zkwatch

import (
	"context"
	"fmt"
	"iter"

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

// NewTree names the tree at path. It has no options.
func NewTree(s *zksync.Session, path string, opts ...zksync.Option) *Tree {
	at := session.NewViewAccess("zkwatch", (*session.Session)(s), path, opts).Without(append([]string{"WithACL", "WithName"}, session.OfHolds...)...)
	return &Tree{at: at, cache: follow.NewCache(at, at.Full(path))}
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
