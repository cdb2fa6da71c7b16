package subtree

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Kind says what an [Event] tells.
type Kind int

const (
	// Created tells of a node: one that was there, or one that was made.
	Created Kind = iota + 1
	// Changed tells of new data.
	Changed
	// Deleted tells that a node is gone. The nodes below it are told first. A node that was
	// deleted and made again is told as Deleted and Created.
	Deleted
	// Initialized is told once, when everything that was there at the beginning has been told.
	Initialized
	// Interrupted tells that the connection was lost, so changes are not heard of. It is told after Initialized only.
	Interrupted
	// Resumed tells that everything has been told that changed since Interrupted.
	Resumed
)

// Event is a change of a tree. Path is that of the node, on the servers. Data and Stat are those of a node
// that was created or changed. A [Cache] also tells what a deleted node was last.
type Event struct {
	Kind Kind
	Path string
	Data []byte
	Stat *zk.Stat
}

// Tree returns a loop over the changes of the node at path, a path on the servers, and of everything below it. The node need
// not exist. The loop begins with what is there, parents before their children, and with Initialized. Then it reports the last
// state of each node that has changed, through all disconnects. It waits and ends as [follow.Data] does. Nodes that the session
// may not read are left out; up to 64 of them are read again in each session timeout.
//
// The beginning, each new connection and each change cost one request a node, and one more for each node with children. Servers
// before 3.6 know no recursive watches: there each node costs two.
func Tree(ctx context.Context, at *session.Access, path string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := newTree(path)
		t.yield = yield
		// The error of In says why the loop ends. If its body has left it, nobody is there to hear that.
		if err := at.Run(ctx, "", t.in); err != nil && !t.stopped {
			yield(Event{}, err)
		}
	}
}

// tree is one loop. It belongs to the goroutine of the loop, except jobs, and what a Cache reads.
type tree struct {
	path  string
	yield func(Event, error) bool
	jobs  *jobs // what is to be read

	mu   sync.RWMutex // held while entries change; only the goroutine of the loop changes them
	root *entry       // nil if there is no node
	keep bool         // the entries keep the data, too

	secret map[string]struct{} // the paths of nodes that the session may not read; what is below them is not known

	sessions int
	begun    bool // Initialized was told
	behind   bool // Interrupted was told, and Resumed was not
	stopped  bool // the body has left the loop, and must not be called again
}

func newTree(path string) *tree {
	return &tree{path: path, jobs: newJobs(), secret: make(map[string]struct{})}
}

// below is the path of a child.
func below(path, name string) string {
	if path == "/" {
		return path + name
	}
	return path + "/" + name
}

// errStopped means that the body of the loop has left it.
var errStopped = errors.New("the loop was left")

// in follows the tree through one session.
func (t *tree) in(ctx context.Context, e *zkconn.Epoch) error {
	if t.sessions++; t.sessions > 1 {
		if err := follow.Synced(ctx, e, t.path); err != nil {
			return err
		}
	}
	for pace := (node.Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := t.attend(ctx, e)
		if t.stopped || ctx.Err() != nil {
			return err
		}
		if follow.Again(err) || errors.Is(err, zkconn.ErrOver) {
			if err := t.interrupt(); err != nil {
				return err
			}
		}
		if !follow.Again(err) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// attend follows the tree through one connection. The error follow.ErrAgain means that it was lost.
func (t *tree) attend(ctx context.Context, e *zkconn.Epoch) error {
	l := &link{t: t, e: e, number: e.Connection(), cut: make(chan struct{})}
	defer l.end()
	// The watch comes before the reads. So whatever a read does not show is told by an event after it.
	if err := l.watch(ctx); err != nil {
		return follow.Over(err)
	}
	if t.root == nil {
		t.jobs.add(job{t.path, read})
	} else {
		t.revise(t.root, t.path, l.once)
	}
	for path := range t.secret {
		t.jobs.add(job{path, read})
	}
	for pace := (node.Pace{}); ; {
		if l.refused && len(l.asked) == 0 { // those that were refused together wait together
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
		l.ask()
		if len(l.asked) == 0 {
			if err := t.current(); err != nil {
				return err
			}
		}
		answer, err := l.next(ctx)
		if err == nil && answer != nil { // else there are new jobs
			err = l.settle(answer)
		}
		if err != nil {
			return err
		}
	}
}

// current notes that everything has been read that is known to have changed.
func (t *tree) current() error {
	switch {
	case !t.begun:
		t.begun = true
		return t.tellAlone(Initialized)
	case t.behind:
		t.behind = false
		return t.tellAlone(Resumed)
	}
	return nil
}

// interrupt notes that changes are not heard of any more.
func (t *tree) interrupt() error {
	if !t.begun || t.behind {
		return nil
	}
	t.behind = true
	return t.tellAlone(Interrupted)
}

// tellAlone tells an event that is about no node.
func (t *tree) tellAlone(kind Kind) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tell(Event{Kind: kind, Path: t.path})
}

// tell calls the body of the loop. mu is held: for a Cache, entries and events change together.
func (t *tree) tell(ev Event) error {
	if !t.yield(ev, nil) {
		t.stopped = true
		return errStopped
	}
	return nil
}
