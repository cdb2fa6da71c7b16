package follow

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Kind is the kind of an [Event].
type Kind int

const (
	// Created is a node: one that was there at the beginning, or one that was made.
	Created Kind = iota + 1
	// Changed is new data.
	Changed
	// Deleted is the end of a node. The nodes below it come first. A node that was deleted and made again is Deleted and Created.
	Deleted
	// Initialized comes once, after everything that was there at the beginning.
	Initialized
	// Interrupted means that the connection was lost, so changes are not seen. It comes only after Initialized.
	Interrupted
	// Resumed means that all changes since Interrupted have been reported.
	Resumed
)

// Event is a change of a tree. Path is the node's path on the servers. Data and Stat are those of a node
// that was created or changed; in a [Cache] also the last ones of a deleted node.
type Event struct {
	Kind Kind
	Path string
	Data []byte
	Stat *zk.Stat
}

// Tree returns a loop over the changes of the node at path, a path on the servers, and of everything below it. The node need
// not exist. The loop begins with what is there, parents before their children, and with Initialized. Then it reports the last
// state of each node that has changed. It waits and ends as [Data] does. It leaves out nodes that the session
// may not read; in each session timeout it reads up to 64 of them again.
//
// At the beginning, on each new connection and at each change a node costs one request, and a node with children one more. Servers
// before 3.6 have no recursive watches: there each node costs two.
func Tree(ctx context.Context, at *session.Access, path string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := newTree(path)
		t.yield = yield
		// If the body has left the loop, the error does not matter.
		if err := at.Run(ctx, "", t.in); err != nil && !t.stopped {
			yield(Event{}, err)
		}
	}
}

// tree is one loop. Only the loop's goroutine uses it, except jobs, and what a Cache reads.
type tree struct {
	path  string
	part  Part
	yield func(Event, error) bool
	jobs  *jobs // what is to be read

	mu   sync.RWMutex // held while entries change; only the goroutine of the loop changes them
	root *entry       // nil if there is no node
	keep bool         // the entries keep the data, too

	secret map[string]struct{} // the paths of nodes that the session may not read; what is below them is not known

	sessions int
	begun    bool // Initialized was reported
	behind   bool // Interrupted was reported, and Resumed was not
	stopped  bool // the body has left the loop, and must not be called again
}

func newTree(path string) *tree {
	return &tree{path: path, part: Part{Depth: Unbounded}, jobs: newJobs(), secret: make(map[string]struct{})}
}

// below is the path of a child.
func below(path, name string) string {
	if path == "/" {
		return path + name
	}
	return path + "/" + name
}

// in follows the tree through one session.
func (t *tree) in(ctx context.Context, e *zkconn.Epoch) error {
	if t.sessions++; t.sessions > 1 {
		if err := synced(ctx, e, t.path); err != nil {
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
		if again(err) || errors.Is(err, zkconn.ErrOver) {
			if err := t.interrupt(); err != nil {
				return err
			}
		}
		if !again(err) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// attend follows the tree through one connection. The error node.ErrAgain means that it was lost.
func (t *tree) attend(ctx context.Context, e *zkconn.Epoch) error {
	l := &link{t: t, e: e, number: e.Connection(), cut: make(chan struct{})}
	defer l.end()
	// The watch comes before the reads. So whatever a read does not show has an event after it.
	if err := l.watch(ctx); err != nil {
		return over(err)
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
		if l.refused && len(l.asked) == 0 { // reads that were refused together wait together
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
			err = l.handled(answer)
		}
		if err != nil {
			return err
		}
	}
}

// current reports, if that is news, that everything has been read that is known to have changed.
func (t *tree) current() error {
	switch {
	case !t.begun:
		t.begun = true
		return t.reportAlone(Initialized)
	case t.behind:
		t.behind = false
		return t.reportAlone(Resumed)
	}
	return nil
}

// interrupt reports that changes are not seen any more.
func (t *tree) interrupt() error {
	if !t.begun || t.behind {
		return nil
	}
	t.behind = true
	return t.reportAlone(Interrupted)
}

// reportAlone reports an event that is not about a node.
func (t *tree) reportAlone(kind Kind) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report(Event{Kind: kind, Path: t.path})
}

// report yields an event. mu is held: for a Cache, entries and events change together.
func (t *tree) report(ev Event) error {
	if !t.yield(ev, nil) {
		t.stopped = true
		return errStopped
	}
	return nil
}
