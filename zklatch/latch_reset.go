package zklatch

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Reset closes the latch again, with nothing counted. Whoever waits gets zksync.ErrBroken,
// unless it was open. Of several who reset at the same time each may have its turn. It blocks until
// the servers confirm it, ctx ends (the error wraps the context's, and it is unknown
// whether the latch was reset), or the session is closed (zksync.ErrClosed).
func (l *Latch) Reset(ctx context.Context) error {
	var from int64 = -1
	return l.in(ctx, "reset", func(ctx context.Context, e *zkconn.Epoch) error {
		// A Reset that came before this call is not the one that was asked for. And the server of a new session may be behind
		// what the session before has read: it must not pass an older Reset off as a later one.
		if err := record.Synced(ctx, e, l.base()); err != nil {
			return err
		}
		for pace := (node.Pace{}); ; {
			st, err := l.learn(ctx, e)
			if err != nil {
				return err
			}
			if from >= 0 && st.Generation > from { // done, by us or by somebody else
				l.seen.Store(&latchView{st.stat.Czxid, st.Generation})
				l.sweep(st.Generation)
				return nil
			}
			from = st.Generation
			if done, err := l.turn(ctx, e, st); err != nil {
				return err
			} else if done {
				continue
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// turn tries to begin the next generation, and reports whether it did.
func (l *Latch) turn(ctx context.Context, e *zkconn.Epoch, st latchState) (done bool, err error) {
	data, err := json.Marshal(latchState{Total: st.Total, Generation: st.Generation + 1})
	if err != nil {
		return false, err
	}
	was := l.closed(st.Generation)
	_, closed, err := e.Exists(ctx, was)
	if err != nil {
		return false, err
	}
	ops := []any{
		&zk.SetDataRequest{Path: l.base(), Data: data, Version: st.stat.Version},
		&zk.CreateRequest{Path: l.counts(st.Generation + 1), Acl: l.door.ACL()},
		&zk.CreateRequest{Path: l.closed(st.Generation + 1), Acl: l.door.ACL()},
	}
	if closed { // it changes before it goes: so those who wait hear that it was not opened
		ops = append(ops, &zk.SetDataRequest{Path: was, Version: -1}, &zk.DeleteRequest{Path: was, Version: -1})
	}
	_, err = e.StartMulti(ops...).Wait(ctx, e)
	switch {
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent),
		// It may have opened, or been reset, since the state was read.
		errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists):
		return false, nil
	}
	return err == nil, err
}

// sweep removes what was counted before the generation before this one; of that somebody may
// still have to find out whether he counted. It also removes what an earlier Reset has left because
// its process ended.
func (l *Latch) sweep(generation int64) {
	l.door.Spawn(func() {
		// Whatever cannot be removed is in nobody's way, and the next Reset tries again.
		_ = l.door.In(context.Background(), func(ctx context.Context, e *zkconn.Epoch) error {
			names, _, err := e.Children(ctx, l.base())
			if err != nil {
				return err
			}
			for _, name := range names {
				n, counts := strings.CutPrefix(name, "counts-")
				if g, err := strconv.ParseInt(n, 10, 64); !counts || err != nil || g >= generation-1 {
					continue
				}
				if err := removeAll(ctx, e, l.base()+"/"+name); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// removeAll removes a directory of nodes without children.
func removeAll(ctx context.Context, e *zkconn.Epoch, dir string) error {
	names, _, err := e.Children(ctx, dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for _, name := range names {
		if err := e.Delete(ctx, dir+"/"+name); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	if err := e.Delete(ctx, dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}
