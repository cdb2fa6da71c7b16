package zkwatch

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/session"
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
// that happens meanwhile; afterwards it becomes what is there. It leaves out what the session may not read. It is safe for use by many
// goroutines.
//
// It costs one request, one for each node, and one for each node with children. A node that is created or changed later
// costs one, and a deletion none or one. After a lost connection each node costs one. On servers before 3.6, and on tapped connections, which have no
// recursive watches, each node costs two at the beginning and after a lost connection, and a child that comes or goes a listing of its parent.
type Tree struct {
	path string
	at   *session.Access
	stop context.CancelFunc
	ctx  context.Context // ends when Close begins
	once sync.Once       // the goroutine

	started, ended chan struct{} // everything that was there is known; the goroutine has ended

	mu     sync.Mutex
	nodes  map[string]*item // by their paths; changed by the goroutine only
	begun  bool             // Initialized was told
	err    error            // why the tree has ended
	future *moment          // the next event
}

// item is a node of the tree.
type item struct {
	node  Node
	names map[string]struct{} // of its children
}

// moment is one event of the history. A loop over the changes holds the one that it waits for.
type moment struct {
	event Event
	next  *moment
	told  chan struct{} // closed when event and next are set, or the tree has ended
}

// NewTree names the tree at path. It does no I/O. Start reports a malformed path, a nil session, or an option as
// zksync.ErrMisuse: a tree takes none.
func NewTree(s *zksync.Session, path string, opts ...zksync.Option) *Tree {
	t := &Tree{
		path: path, at: session.NewAccess((*session.Session)(s), path, opts).Without(append([]string{"WithACL", "WithName"}, session.OfHolds...)...),
		started: make(chan struct{}), ended: make(chan struct{}), nodes: map[string]*item{}, future: newMoment(),
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

func newMoment() *moment { return &moment{told: make(chan struct{})} }

// Start begins to follow the tree, and returns when everything that is there is known.
//
// It blocks until then, through disconnects and new sessions, or until ctx ends: then the error wraps the context's error, and the
// tree goes on; another Start waits for it again. If the session is closed, the error is zksync.ErrClosed, after Close of the
// tree zksync.ErrReleased. If the servers refuse to show the node itself, it is theirs.
func (t *Tree) Start(ctx context.Context) error {
	t.once.Do(func() {
		if !t.at.Spawn(t.run) {
			t.end(zksync.ErrClosed)
		}
	})
	select {
	case <-t.ended:
		return t.wrap("start", t.reason())
	default:
	}
	select {
	case <-t.started:
		return nil
	case <-t.ended:
		return t.wrap("start", t.reason())
	case <-ctx.Done():
		return t.wrap("start", errs.OfContext(ctx))
	}
}

func (t *Tree) wrap(op string, err error) error { return errs.Wrap(op, t.path, err) }

func (t *Tree) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Close ends the tree, and waits for its goroutine. What it has read can still be read. Loops over its changes end.
func (t *Tree) Close() {
	t.stop()
	t.once.Do(func() { t.end(zksync.ErrReleased) }) // it was never started
	<-t.ended
}

// run follows the tree.
func (t *Tree) run() {
	err := t.at.Misuse()
	if err == nil {
		for ev, failed := range follow.Tree(t.ctx, t.at, t.at.Full(t.path)) {
			if err = failed; err == nil {
				t.apply(ev)
			}
		}
	}
	if t.ctx.Err() != nil {
		err = zksync.ErrReleased
	}
	t.end(err)
}

func (t *Tree) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	close(t.ended)
	close(t.future.told)
}

// apply changes the copy, and tells of it.
func (t *Tree) apply(ev follow.Event) {
	path := t.at.Local(ev.Path)
	now := Event{Node: nodeOf(path, ev.Data, ev.Stat)}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.nodes[path]
	switch ev.Kind {
	case follow.Created:
		now.Kind = Created
		t.nodes[path] = &item{node: now.Node, names: map[string]struct{}{}}
		if above, name := split(path); t.nodes[above] != nil {
			t.nodes[above].names[name] = struct{}{}
		}
	case follow.Changed:
		now.Kind, old.node = Changed, now.Node
	case follow.Deleted:
		now.Kind, now.Node = Deleted, old.node
		now.Node.OK = false
		delete(t.nodes, path)
		if above, name := split(path); t.nodes[above] != nil {
			delete(t.nodes[above].names, name)
		}
	case follow.Initialized:
		now = Event{Kind: Initialized, Node: Node{Path: t.path}}
		t.begun = true
		close(t.started)
	default:
		return // an outage
	}
	m := t.future
	m.event, m.next = now, newMoment()
	t.future = m.next
	close(m.told)
}

// split is the path of the parent of a node, and the name of the node in it.
func split(path string) (above, name string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 1)], path[at+1:]
}

// Get returns the node at path, as the copy has it, and whether it has it. It does not block. The data must not be modified.
func (t *Tree) Get(path string) (Node, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.nodes[path]; i != nil {
		return i.node, true
	}
	return Node{Path: path}, false
}

// Children returns the names of the children of the node at path, sorted; nil if the copy has no such node. It does not block.
func (t *Tree) Children(path string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.nodes[path]
	if i == nil {
		return nil
	}
	return slices.AppendSeq(make([]string, 0, len(i.names)), slices.Values(slices.Sorted(maps.Keys(i.names))))
}

// Changes is a loop over the changes of the tree: first what is there, parents before their children, then Initialized, and then every
// later change. If a node changes again before that was read, only the last state is told. Each loop goes at its own pace and misses nothing: a slow one holds
// the events that it has yet to see in memory. What it tells adds up to what Get and Children show.
//
// Each step blocks until the next change, through disconnects and new sessions. The loop ends with an error, told once: that of ctx, zksync.ErrClosed if the
// session is closed, or the one with which Start fails. After Close it ends without one. It starts the tree if Start was not called. It costs nothing itself.
func (t *Tree) Changes(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t.once.Do(func() {
			if !t.at.Spawn(t.run) {
				t.end(zksync.ErrClosed)
			}
		})
		present, m := t.present()
		for _, ev := range present {
			if ctx.Err() == nil && !yield(ev, nil) {
				return
			}
		}
		for {
			select {
			case <-ctx.Done():
				yield(Event{}, t.wrap("watch", errs.OfContext(ctx)))
				return
			case <-m.told:
			}
			if m.next == nil { // the tree has ended
				if err := t.reason(); err != zksync.ErrReleased {
					yield(Event{}, t.wrap("watch", err))
				}
				return
			}
			if !yield(m.event, nil) {
				return
			}
			m = m.next
		}
	}
}

// present is what a loop that begins now tells first, and what it waits for then.
func (t *Tree) present() ([]Event, *moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := make([]Event, 0, len(t.nodes)+1)
	for _, path := range slices.Sorted(maps.Keys(t.nodes)) { // a parent is a prefix of its children, so it comes first
		events = append(events, Event{Kind: Created, Node: t.nodes[path].node})
	}
	if t.begun {
		events = append(events, Event{Kind: Initialized, Node: Node{Path: t.path}})
	}
	return events, t.future
}
