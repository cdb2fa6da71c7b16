package zkwatch

import (
	"context"
	"fmt"
	"iter"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/subtree"
	"github.com/go-menagerie/menagerie/zksync"
)

// Kind says what an [Event] tells.
type Kind int

const (
	// Created tells of a node: one that was there at the beginning, or one that was made.
	Created Kind = iota + 1
	// Changed tells of new data.
	Changed
	// Deleted tells that a node is gone. A node that was deleted and made again is told as Deleted and Created.
	Deleted
	// Initialized is told once, when everything that was there at the beginning has been told.
	Initialized
)

// kinds are those of package follow. It also tells of outages, which have no meaning for who only wants the nodes.
var kinds = map[subtree.Kind]Kind{
	subtree.Created: Created, subtree.Changed: Changed, subtree.Deleted: Deleted, subtree.Initialized: Initialized,
}

// String is the name of the kind, in lower case.
func (k Kind) String() string {
	names := [...]string{Created: "created", Changed: "changed", Deleted: "deleted", Initialized: "initialized"}
	if k < Created || k > Initialized {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Event is a change of a tree. Of a deleted node it has the last state that was known, with OK false.
type Event struct {
	Kind Kind
	Node Node // for Initialized only its Path is set, to that of the tree
}

// Tree is a copy in memory of a node and everything below it, which is kept up to date: Curator's TreeCache. The node need
// not exist. The copy may be behind what is on the servers, by as much as the network is, and during an outage by all
// that happens meanwhile; afterwards it becomes what is there. It leaves out what the session may not read, and looks
// for it again once in a session timeout, since servers tell nobody that this has changed. It is safe for use by many goroutines.
//
// It costs one request, one for each node, and one for each node with children. A node that is created or changed later
// costs one. After a lost connection each node costs one. On servers before 3.6, which have no
// recursive watches, each node costs two at the beginning and after a lost connection, and a child that comes or goes a
// listing of its parent.
type Tree struct {
	path  string
	at    *session.Access
	cache *subtree.Cache
}

// NewTree names the tree at path, which may be "/". It does no I/O. Start reports a malformed path, a nil session, or an option as
// zksync.ErrMisuse: a tree takes none.
func NewTree(s *zksync.Session, path string, opts ...zksync.Option) *Tree {
	at := session.NewViewAccess((*session.Session)(s), path, opts).Without(append([]string{"WithACL", "WithName"}, session.OfHolds...)...)
	return &Tree{path: path, at: at, cache: subtree.NewCache(at, at.Full(path))}
}

// made is t, which NewTree has made. Of a zero or nil value it panics.
func (t *Tree) made() *Tree {
	if t == nil || t.at == nil {
		panic(errs.Unmade("a Tree", "NewTree"))
	}
	return t
}

// Start begins to follow the tree, and returns when everything that is there is known.
//
// It blocks until then, through disconnects and new sessions, or until ctx ends: then the error wraps the context's error,
// and the tree goes on; another Start waits for it again. If the session is closed, the error is zksync.ErrClosed. After
// Close of the tree it is zksync.ErrMisuse.
func (t *Tree) Start(ctx context.Context) error {
	return errs.Wrap("start", t.made().path, t.cache.Start(ctx))
}

// Close ends the tree, and waits for its goroutine. What it has read can still be read. Loops over its changes end.
func (t *Tree) Close() { t.made().cache.Close() }

// Get returns the node at path, as the copy has it, and whether it has it. It does not block. The data must not be modified.
func (t *Tree) Get(path string) (Node, bool) {
	n, there := t.made().cache.Get(t.at.Full(path))
	return nodeOf(path, n.Data, n.Stat), there
}

// Children returns the names of the children of the node at path, sorted; nil if the copy has no such node. It does not
// block.
func (t *Tree) Children(path string) []string { return t.made().cache.Children(t.at.Full(path)) }

// Changes is a loop over the changes of the tree: first what is there, parents before their children, then Initialized, and
// then every later change. If a node changes again before that was read, only the last state is told. Each loop goes at its
// own pace and misses nothing: a slow one holds the events that it has yet to see in memory. What it tells adds up to what
// Get and Children show. Start begins the tree; a loop before that waits.
//
// Each step blocks until the next change, through disconnects and new sessions. The loop ends with an error, told once:
// that of ctx, zksync.ErrClosed if the session is closed, or the one with which Start fails. After Close it ends without
// one. It costs nothing itself.
func (t *Tree) Changes(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for ev, err := range t.made().cache.Changes(ctx) {
			if err != nil {
				yield(Event{}, errs.Wrap("watch", t.path, err))
				return
			}
			now := Event{Kind: kinds[ev.Kind], Node: nodeOf(t.at.Local(ev.Path), ev.Data, ev.Stat)}
			now.Node.OK = now.Node.OK && now.Kind != Deleted
			if now.Kind != 0 && !yield(now, nil) {
				return
			}
		}
	}
}
