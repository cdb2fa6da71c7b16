package zklatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// latchState is the data of a latch's base node. Each Reset begins a generation, with a
// directory of counts and a node that is there as long as the latch is closed.
type latchState struct {
	Total      int   `json:"total"`
	Generation int64 `json:"generation"`

	stat *zk.Stat
}

// latchView is what somebody knows of a latch: which generation it is in, and of which base node,
// by its czxid. The zero view is a guess, of a latch that was never reset. Nothing needs to be
// known for sure: whatever relies on a view fails if it is outdated, because there is no
// node that says that the latch is closed, and there never will be again.
type latchView struct {
	base       int64
	generation int64
}

// fits reports whether v, which was true once, can still be.
func (v latchView) fits(now latchView) bool {
	return v.generation == now.generation && (v.base == 0 || v.base == now.base)
}

func (l *Latch) known() latchView {
	if v := l.seen.Load(); v != nil {
		return *v
	}
	return latchView{}
}

func (l *Latch) base() string { return l.door.Full(l.path) }

// counts has one node for each event.
func (l *Latch) counts(generation int64) string {
	return fmt.Sprintf("%s/counts-%d", l.base(), generation)
}

// closed is there while the latch is. It has the total in its name, so that nobody has
// to read that before he counts.
func (l *Latch) closed(generation int64) string {
	return fmt.Sprintf("%s/closed-%d-of-%d", l.base(), generation, l.total)
}

// look reads what is true of the latch. If that is what was known, and there was no node that says that it
// is closed, then the latch is open.
func (l *Latch) look(ctx context.Context, e *zkconn.Epoch) (latchView, error) {
	st, err := l.learn(ctx, e)
	if err != nil {
		return latchView{}, err
	}
	v := latchView{st.stat.Czxid, st.Generation}
	l.seen.Store(&v)
	return v, nil
}

// learn reads the state, or writes it if nobody has.
func (l *Latch) learn(ctx context.Context, e *zkconn.Epoch) (st latchState, err error) {
	for pace := record.Founding(); ; {
		data, stat, err := e.Get(ctx, l.base())
		if errors.Is(err, zk.ErrNoNode) {
			if err := l.found(ctx, e); err != nil {
				return st, err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return st, err
			}
			continue
		}
		if err != nil {
			return st, err
		}
		if !record.DecodeTerms(data, &st, "total", "generation") || st.Total < 1 {
			return st, fmt.Errorf("%w: the base node is not that of a latch; use a path of its own", zksync.ErrMisuse)
		}
		if st.Total != l.total {
			return st, fmt.Errorf("%w: the latch is one of %d events, not %d; use the same number everywhere",
				zksync.ErrMisuse, st.Total, l.total)
		}
		st.stat = stat
		return st, nil
	}
}

// found makes a latch that nobody has used.
func (l *Latch) found(ctx context.Context, e *zkconn.Epoch) error {
	data, err := json.Marshal(latchState{Total: l.total})
	if err != nil {
		return err
	}
	_, err = record.Transact(ctx, e,
		&zk.CreateRequest{Path: l.base(), Data: data, Acl: l.door.ACL()},
		&zk.CreateRequest{Path: l.counts(0), Acl: l.door.ACL()},
		&zk.CreateRequest{Path: l.closed(0), Acl: l.door.ACL()},
	)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return record.Synced(ctx, e, l.base()) // this server has to hear of it
	case errors.Is(err, zk.ErrNoNode):
		return node.MakeDir(ctx, e, record.Parent(l.base()), l.door.ACL())
	}
	return err
}
