package follow

import (
	"context"
	"errors"
	"iter"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Node is the state of a node. If there is no node, Stat is nil.
type Node struct {
	Data []byte
	Stat *zk.Stat
}

// Listing is the names of a node's children, in no order. If there is no node, Stat is nil.
type Listing struct {
	Names []string
	Stat  *zk.Stat
}

// Data returns a loop over the states of the node at path, a path on the servers: the present state, and then each later
// one of its data. It waits for the next change, and for a connection. It ends with an error, which comes last. It leaves no watch
// behind.
//
// The first state costs a request, two if there is no node. Each change costs one, two if it makes the node; the end of the loop
// costs one, and a new session one more.
func Data(ctx context.Context, at *session.Access, path string) iter.Seq2[Node, error] {
	return states(ctx, at, path,
		func(ctx context.Context, e *zkconn.Epoch, notify func(zkconn.Event)) (*zkconn.Watch, Node, error) {
			w, c, err := e.WatchData(ctx, path, notify)
			return w, Node(c), err
		},
		func(n Node) stamp {
			if n.Stat == nil {
				return stamp{}
			}
			return stamp{n.Stat.Czxid, n.Stat.Mzxid}
		},
		func(_ *zkconn.Epoch, w *zkconn.Watch) { w.Stop() }) // it serves the next read

}

// Children is [Data] for the children of the node at path. A child that was deleted and made again is
// a change, although the names are the same.
func Children(ctx context.Context, at *session.Access, path string) iter.Seq2[Listing, error] {
	return states(ctx, at, path,
		func(ctx context.Context, e *zkconn.Epoch, notify func(zkconn.Event)) (*zkconn.Watch, Listing, error) {
			w, l, err := e.WatchChildren(ctx, path, notify)
			return w, Listing(l), err
		},
		func(l Listing) stamp {
			if l.Stat == nil {
				return stamp{}
			}
			return stamp{l.Stat.Czxid, l.Stat.Pzxid}
		}, (*zkconn.Epoch).Unwatch)
}

// stamp identifies a state: the zxid that made the node, and the zxid of its last change. It is zero if there is no node.
type stamp struct{ made, changed int64 }

// errStopped means that the body of the loop has left it.
var errStopped = errors.New("the loop was left")

// follower is one loop.
type follower[T any] struct {
	path  string
	read  func(context.Context, *zkconn.Epoch, func(zkconn.Event)) (*zkconn.Watch, T, error)
	stamp func(T) stamp
	found func(*zkconn.Epoch, *zkconn.Watch) // ends a watch for the creation of a node that is there: on its data
	yield func(T, error) bool

	begun   bool  // a state was yielded
	last    stamp // of what was yielded last
	absent  bool  // the node is probably not there: the next look is for its creation
	stopped bool  // the body has left the loop, and must not be called again
}

func states[T any](ctx context.Context, at *session.Access, path string,
	read func(context.Context, *zkconn.Epoch, func(zkconn.Event)) (*zkconn.Watch, T, error), stampOf func(T) stamp,
	found func(*zkconn.Epoch, *zkconn.Watch)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f := &follower[T]{path: path, read: read, stamp: stampOf, found: found, yield: yield}
		// If the body has left the loop, the error does not matter.
		if err := at.Run(ctx, "", f.in); err != nil && !f.stopped {
			var none T
			yield(none, err)
		}
	}
}

// in follows the node through one session.
func (f *follower[T]) in(ctx context.Context, e *zkconn.Epoch) error {
	if f.begun {
		if err := synced(ctx, e, f.path); err != nil {
			return err
		}
	}
	// The pauses are for a server that keeps answering nonsense. A lost answer, and a node that was made or deleted between two
	// requests, cost none.
	for pace := (node.Pace{Free: 2}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		switch err := f.step(ctx, e); {
		case err == nil:
			pace = node.Pace{Free: 2}
		case !again(err):
			return err
		default:
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	}
}

// step yields one state, and waits until there may be another. It leaves no watch, however the body of the loop ends: it may panic.
func (f *follower[T]) step(ctx context.Context, e *zkconn.Epoch) error {
	event := make(chan zkconn.Event, 1) // a watch has one event
	w, state, err := f.look(ctx, e, func(what zkconn.Event) { event <- what })
	if err != nil {
		return err
	}
	defer func() { e.Unwatch(w) }() // after the event there is none
	if err := f.report(state); err != nil {
		return err
	}
	what, err := await(ctx, e, event)
	switch what {
	case zkconn.Deleted:
		f.absent = true
	case zkconn.Created:
		f.absent = false
	}
	return err
}

// again reports whether a read should be made again.
func again(err error) bool {
	return errors.Is(err, node.ErrAgain) || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent)
}

// look reads the state, and sets the watch for the next one.
func (f *follower[T]) look(ctx context.Context, e *zkconn.Epoch, notify func(zkconn.Event)) (w *zkconn.Watch, state T, err error) {
	if f.absent {
		w, call := e.StartWatchAbsence(f.path, notify)
		switch _, err = call.Wait(ctx, e); {
		case err == nil:
			f.found(e, w)
			f.absent, err = false, node.ErrAgain
		case errors.Is(err, zk.ErrNoNode):
			err = nil
		default:
			zkconn.GiveUp(e, w, call)
			w = nil
		}
		return w, state, over(err)
	}
	w, state, err = f.read(ctx, e, notify)
	if errors.Is(err, zk.ErrNoNode) {
		f.absent, err = true, node.ErrAgain
	}
	return w, state, over(err)
}

// over turns the answer of a server into the error of a session that has ended.
func over(err error) error {
	if errors.Is(err, zk.ErrSessionExpired) {
		return zkconn.ErrOver
	}
	return err
}

// report yields the state, unless it is the last one again.
func (f *follower[T]) report(state T) error {
	s := f.stamp(state)
	if f.begun && s == f.last {
		return nil
	}
	f.begun, f.last = true, s
	if !f.yield(state, nil) {
		f.stopped = true
		return errStopped
	}
	return nil
}

// await waits for the event of a watch.
func await(ctx context.Context, e *zkconn.Epoch, event <-chan zkconn.Event) (zkconn.Event, error) {
	select {
	case what := <-event:
		return what, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-e.Over():
		return 0, zkconn.ErrOver
	}
}

// synced waits until the server has caught up with the leader.
func synced(ctx context.Context, e *zkconn.Epoch, path string) error {
	if err := e.Sync(ctx, path); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return over(err)
	}
	return nil
}
