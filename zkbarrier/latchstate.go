package zkbarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/enter"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// state is the data of a latch's base node. Each Reset begins a generation, with a
// directory of counts and a node that is there as long as the latch is closed.
type state struct {
	Total      int   `json:"total"`
	Generation int64 `json:"generation"`

	version int32
}

func (l *Latch) base() string { return l.door.Full(l.path) }

func (l *Latch) counts(generation int64) string {
	return fmt.Sprintf("%s/counts-%d", l.base(), generation)
}

func (l *Latch) closed(generation int64) string {
	return fmt.Sprintf("%s/closed-%d", l.base(), generation)
}

// learn reads the state, or writes it if nobody has.
func (l *Latch) learn(ctx context.Context, e *zkconn.Epoch) (st state, err error) {
	for synced := false; ; {
		data, stat, err := e.Get(ctx, l.base())
		if errors.Is(err, zk.ErrNoNode) {
			if err := l.found(ctx, e); err != nil {
				return st, err
			}
			continue
		}
		if err != nil {
			return st, err
		}
		if err := json.Unmarshal(data, &st); err != nil || st.Total < 1 {
			return st, fmt.Errorf("%w: the base node is not that of a latch; use a path of its own", zksync.ErrMisuse)
		}
		if !synced { // a Reset that came before this call must be seen
			if err := e.Sync(ctx, l.base()); err != nil {
				return st, err
			}
			synced = true
			continue
		}
		if st.Total != l.total {
			return st, fmt.Errorf("%w: the latch is one of %d events, not %d; use the same number everywhere",
				zksync.ErrMisuse, st.Total, l.total)
		}
		st.version = stat.Version
		return st, nil
	}
}

// found makes the base node, and the node that says that the latch is closed, at once.
func (l *Latch) found(ctx context.Context, e *zkconn.Epoch) error {
	data, err := json.Marshal(state{Total: l.total})
	if err != nil {
		return err
	}
	if err := e.Await(ctx); err != nil {
		return err
	}
	_, err = e.StartMulti(
		&zk.CreateRequest{Path: l.base(), Data: data, Acl: l.door.ACL()},
		&zk.CreateRequest{Path: l.closed(0), Acl: l.door.ACL()},
	).Wait(ctx, e)
	switch {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return enter.MakeDir(ctx, e, parentOf(l.base()), l.door.ACL())
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return enter.Sleep(ctx, e, pause)
	}
	return err
}

// parentOf is the directory of a node on the servers.
func parentOf(node string) string {
	for i := len(node) - 1; i > 0; i-- {
		if node[i] == '/' {
			return node[:i]
		}
	}
	return "/"
}

// Reset closes the latch again, with nothing counted. Whoever waits gets zksync.ErrBroken,
// unless it was open. Of several who reset at the same time each may have its turn. It blocks
// and fails like CountDown.
func (l *Latch) Reset(ctx context.Context) error {
	var from int64 = -1
	return l.in(ctx, "reset", func(ctx context.Context, e *zkconn.Epoch, st state) error {
		for {
			if from >= 0 && st.Generation > from {
				// Done, by us or by somebody else. What was counted is nobody's any more.
				e.Reap(zkconn.Litter{Dir: l.counts(from), Prefix: "_c_"})
				return nil
			}
			from = st.Generation
			err := l.turn(ctx, e, st)
			if errors.Is(err, zkconn.ErrNotSent) {
				err = e.Await(ctx)
			}
			// It may have opened, or been reset, since the state was read.
			if err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) &&
				!errors.Is(err, zk.ErrNodeExists) && !zkconn.Unknown(err) {
				return err
			}
			if st, err = l.learn(ctx, e); err != nil {
				return err
			}
		}
	})
}

// turn begins the next generation.
func (l *Latch) turn(ctx context.Context, e *zkconn.Epoch, st state) error {
	data, err := json.Marshal(state{Total: st.Total, Generation: st.Generation + 1})
	if err != nil {
		return err
	}
	ops := []any{
		&zk.SetDataRequest{Path: l.base(), Data: data, Version: st.version},
		&zk.CreateRequest{Path: l.closed(st.Generation + 1), Acl: l.door.ACL()},
	}
	_, closed, err := e.Exists(ctx, l.closed(st.Generation))
	if err != nil {
		return err
	}
	if closed { // whoever waits for it hears that it is gone, and sees the new generation
		ops = append(ops, &zk.DeleteRequest{Path: l.closed(st.Generation), Version: -1})
	}
	_, err = e.StartMulti(ops...).Wait(ctx, e)
	return err
}
