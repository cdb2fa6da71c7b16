package zkgroup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// A round is the record of which items are done. It is named by a uuid, and lasts as long as somebody works on it: a worker has
// an ephemeral node in the directory of workers, whose data is the uuid. To begin or to end a round is to delete that directory
// and to make it again, in one transaction. The servers refuse to delete a directory that has children, so a round
// never ends while somebody works on it. A worker that joins checks in the same transaction that the round is open.
//
//	open-<uuid>          exists while the round is open
//	round-<uuid>/list-*  the lists of its workers
//	round-<uuid>/item-*  the items that are done

// begin makes the worker's node, in the round that is open, or in a new one. A worker that comes back in its next session
// goes on with its round if that is still open, even if nobody else is there.
func (a *assignment) begin(ctx context.Context, e *zkconn.Epoch) error {
	if err := a.g.known(ctx, e); err != nil {
		return err
	}
	for pace := (node.Pace{Free: 2}); ; {
		data, _, err := e.Get(ctx, a.g.workers())
		if errors.Is(err, zk.ErrNoNode) {
			return errRemoved
		}
		if err != nil {
			return err
		}
		now := string(data)
		if now == "" || now != a.round {
			begun, err := a.found(ctx, e, now)
			if err != nil || begun {
				return err
			}
		}
		if now != "" {
			if joined, err := a.join(ctx, e, now); err != nil || joined {
				return err
			}
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// found begins a new round in the place of another that nobody works on.
func (a *assignment) found(ctx context.Context, e *zkconn.Epoch, old string) (bool, error) {
	g, id := a.g, node.NewUUID()
	ops := []any{
		&zk.DeleteRequest{Path: g.workers(), Version: -1},
		g.create(g.workers(), []byte(id), 0),
		g.create(g.open(id), nil, 0),
		g.create(g.round(id), nil, 0),
		g.create(g.round(id)+"/list-"+a.digest, a.list.encode(), 0),
		g.create(a.p.node, []byte(a.digest), zk.FlagEphemeral),
	}
	if old != "" {
		ops = append(ops, &zk.DeleteRequest{Path: g.open(old), Version: -1})
	}
	err := g.apply(ctx, e, ops...)
	switch {
	case err == nil:
		a.round = id
		return true, g.bury(ctx, e, old)
	case record.Conflict(err):
		return false, nil // somebody works on it, or has begun another one
	}
	return false, err
}

// join makes the worker's node in a round. joined is false if that has ended.
func (a *assignment) join(ctx context.Context, e *zkconn.Epoch, round string) (joined bool, err error) {
	g, list := a.g, a.g.round(round)+"/list-"+a.digest
	worker := g.create(a.p.node, []byte(a.digest), zk.FlagEphemeral)
	open := &zk.CheckVersionRequest{Path: g.open(round), Version: -1}
	for {
		err = g.apply(ctx, e, open, &zk.CheckVersionRequest{Path: list, Version: -1}, worker)
		if is(err, 1, zk.ErrNoNode) {
			err = g.apply(ctx, e, open, g.create(list, a.list.encode(), 0), worker)
		}
		switch {
		case err == nil:
			a.round = round
			return true, nil
		case is(err, 0, zk.ErrNoNode), is(err, 1, zk.ErrNoNode):
			return false, nil
		case is(err, 2, zk.ErrNodeExists):
			return false, errTaken
		case is(err, 1, zk.ErrNodeExists):
			continue // another worker has made the list: next time it is there, unless the round has ended
		}
		return false, err
	}
}

// end removes the worker's node, and ends the round if nobody else works on it. The look comes after the removal, in the same
// session. So of several workers that leave at one time, the last one to be removed finds nobody.
func (a *assignment) end(ctx context.Context, e *zkconn.Epoch) error {
	g := a.g
	err := g.apply(ctx, e, &zk.DeleteRequest{Path: a.p.node, Version: -1})
	if err != nil && !is(err, 0, zk.ErrNoNode) {
		return err
	}
	st, there, err := e.Exists(ctx, g.workers())
	if err != nil || !there || st.NumChildren > 0 {
		return err
	}
	err = g.apply(ctx, e, &zk.DeleteRequest{Path: g.workers(), Version: -1},
		g.create(g.workers(), nil, 0),
		&zk.DeleteRequest{Path: g.open(a.round), Version: -1})
	if record.Conflict(err) {
		return nil // somebody has come, or has ended it
	}
	if err != nil {
		return err
	}
	return g.bury(ctx, e, a.round)
}

// bury removes what is left of a round that has ended. Its names are used only once, so the deletes may be repeated.
func (g *Group) bury(ctx context.Context, e *zkconn.Epoch, round string) error {
	if round == "" {
		return nil
	}
	dir := g.round(round)
	names, _, err := e.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for some := range slices.Chunk(names, 128) {
		calls := make([]*zkconn.Call[struct{}], len(some))
		for i, name := range some {
			calls[i] = e.StartDelete(dir + "/" + name)
		}
		for i, name := range some {
			if _, err := calls[i].Wait(ctx, e); err != nil && !errors.Is(err, zk.ErrNoNode) {
				if err := e.Delete(ctx, dir+"/"+name); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
			}
		}
	}
	if err := e.Delete(ctx, dir); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
		return err
	}
	return nil
}

// isDone asks whether an item is done. Whoever holds the lock of the item sees what all holders before have written.
func (a *assignment) isDone(ctx context.Context, e *zkconn.Epoch, round, item string) (bool, error) {
	_, there, err := e.Exists(ctx, a.g.round(round)+"/item-"+itemName(item))
	return there, err
}

// record writes that an item is done. If the round has ended, there is nobody to tell.
func (a *assignment) record(ctx context.Context, e *zkconn.Epoch, round, item string) error {
	_, err := record.Transact(ctx, e, a.g.create(a.g.round(round)+"/item-"+itemName(item), nil, 0))
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// listFor reads the list of another worker.
func (a *assignment) listFor(ctx context.Context, digest string) (l list, err error) {
	if digest == a.digest {
		return a.list, nil
	}
	if l, known := a.lists[digest]; known {
		return l, nil
	}
	err = a.g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		l = nil
		round, _, err := e.Get(ctx, a.g.workers())
		if err != nil || strings.Contains(digest, "/") {
			return err
		}
		data, _, err := e.Get(ctx, a.g.round(string(round))+"/list-"+digest)
		l = decodeList(data)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil // the worker has gone, with its round
	}
	if err == nil {
		a.lists[digest] = l
	}
	return l, err
}
