package zkelection

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Observe returns the present leader, then every later one, and the leader again when it has changed its
// data; zksync.ErrNoLeader while there is none. It may leave out leaders during a disconnect. The sequence
// ends after any other error, and can be ranged over again.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		o := observer{e: e.made(), yield: yield}
		err := e.at.Run(ctx, "", o.observe)
		if !errors.Is(err, errStopped) {
			yield(Candidate{}, e.wrap("observe", err))
		}
	}
}

// errStopped means that the loop over the sequence has ended.
var errStopped = errors.New("stopped")

// errMoved means that the state has changed since it was read, errNoDir that there is no directory to be watched.
var (
	errMoved = errors.New("it has changed meanwhile")
	errNoDir = errors.New("there is no directory")
)

type observer struct {
	e     *Election
	yield func(Candidate, error) bool
	told  bool // at least one candidate or error; last is the newest
	last  Candidate
	stale bool // last may be newer than the state of this session's server
	watch *zkconn.Watch
}

// observe watches in one ZooKeeper session.
func (o *observer) observe(ctx context.Context, ep *zkconn.Epoch) error {
	o.stale = o.told
	for pace := (node.Pace{Free: 1}); ; {
		if err := ep.Await(ctx); err != nil {
			return err
		}
		switch err := o.step(ctx, ep); {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, errMoved), // it was quicker
			zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			if err := pace.Rest(ctx, ep); err != nil {
				return err
			}
		case errors.Is(err, errNoDir):
			if err := pace.Rest(ctx, ep); err != nil { // not after it is made: it is empty then, and may be removed
				return err
			}
			if err := node.MakeDir(ctx, ep, o.e.at.Full(o.e.path), o.e.at.ACL()); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			pace = node.Pace{Free: 1} // for when the directory has to be made, or the state changes between two reads
		}
	}
}

// step yields the present state, and waits until there may be another. It leaves no watch, however the body of the loop
// ends: it may panic.
func (o *observer) step(ctx context.Context, ep *zkconn.Epoch) error {
	moved := make(chan struct{}, 4)
	o.watch = nil
	defer func() {
		if o.watch != nil {
			ep.Unwatch(o.watch) // after the event there is none
		}
	}()
	if err := o.look(ctx, ep, func(zkconn.Event) { moved <- struct{}{} }); err != nil {
		return err
	}
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-ep.Over():
		return zkconn.ErrOver
	}
}

// look yields the leader, if it has changed, and watches for the next change.
func (o *observer) look(ctx context.Context, ep *zkconn.Epoch, tell func(zkconn.Event)) (err error) {
	if o.stale {
		if err := ep.Sync(ctx, o.e.at.Full(o.e.path)); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		o.stale = false
	}
	entries, err := o.e.grants.Queue().List(ctx, ep)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		// If the leader has left since the listing, there is no node to watch. Its data are read under
		// the watch, so that no change of them is missed.
		if o.watch, err = ep.Watch(ctx, o.e.node(entries[0]), tell); err != nil {
			return err
		}
		leader, there, err := o.e.candidate(ctx, ep, entries[0])
		switch {
		case err != nil:
			return err
		case !there:
			return errMoved
		}
		return o.tell(leader, nil)
	}
	dir := o.e.at.Full(o.e.path)
	o.watch, _, err = ep.WatchChildren(ctx, dir, tell)
	if errors.Is(err, zk.ErrNoNode) {
		return errNoDir
	}
	if err != nil {
		return err
	}
	// Listed again under the watch: the watch reports a candidate that comes after this listing.
	switch entries, err := o.e.grants.Queue().List(ctx, ep); {
	case err != nil:
		return err
	case len(entries) > 0:
		return errMoved
	}
	return o.tell(Candidate{}, zksync.ErrNoLeader)
}

// tell yields a leader, or the error that there is none, if it is not the last one.
func (o *observer) tell(c Candidate, err error) error {
	if o.told && c.Node == o.last.Node && c.ID == o.last.ID && bytes.Equal(c.Data, o.last.Data) {
		return nil
	}
	o.told, o.last = true, c
	if err != nil {
		err = o.e.wrap("observe", err)
	}
	if !o.yield(c, err) {
		return errStopped
	}
	return nil
}
