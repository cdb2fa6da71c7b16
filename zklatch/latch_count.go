package zklatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// tally is one event on its way. Its node has no sequence number, so that it is one event
// however often it is asked for, and in however many sessions.
type tally struct {
	name    string
	unsure  bool      // a request was not answered
	counted bool      // a request was answered: the event counts
	asked   latchView // of that request: others may have made newer views known since
}

func newTally() *tally { return &tally{name: node.Prefix(node.NewUUID()) + "-count"} }

// errNotClosed means that what is known of the latch is outdated: it is open, or was reset.
var errNotClosed = errors.New("not closed")

// countDown counts the event, unless the latch is open, and opens it if that was the last.
func (l *Latch) countDown(ctx context.Context, e *zkconn.Epoch, t *tally) error {
	v := l.known()
	if t.unsure || t.counted { // in a session that is over
		v = t.asked
	}
	for {
		n, err := l.count(ctx, e, v, t)
		if err == nil && n >= l.total {
			return l.open(ctx, e, v)
		}
		if !errors.Is(err, errNotClosed) {
			return err
		}
		now, err := l.look(ctx, e)
		if err != nil || now == v {
			return err
		}
		switch {
		case now.generation == v.generation:
		case t.counted:
			return nil
		case t.unsure:
			counted, err := l.settle(ctx, e, v, t)
			if err != nil || counted {
				return err
			}
		}
		v = now
	}
}

// settle finds out whether the event was counted before a Reset.
func (l *Latch) settle(ctx context.Context, e *zkconn.Epoch, v latchView, t *tally) (counted bool, err error) {
	_, counted, err = e.Exists(ctx, l.counts(v.generation)+"/"+t.name)
	if err != nil || counted {
		return counted, err
	}
	_, kept, err := e.Exists(ctx, l.counts(v.generation)) // after the look for the node
	if err != nil {
		return false, err
	}
	now, err := l.look(ctx, e) // a directory is removed after its nodes
	if err == nil && (!kept || now.generation > v.generation+1) {
		err = fmt.Errorf("%w: reset again before it was known whether the event had been counted", zksync.ErrBroken)
	}
	t.unsure = err != nil
	return false, err
}

// count makes the node of the event and returns how many there are, while the latch is closed.
func (l *Latch) count(ctx context.Context, e *zkconn.Epoch, v latchView, t *tally) (int, error) {
	path := l.counts(v.generation) + "/" + t.name
	for rest := record.Rest(0); ; {
		res, err := l.ask(ctx, e, v, t, path)
		switch {
		case err == nil && len(res) > 2 && res[2].Stat != nil && e.Ordered():
			t.counted, t.asked = true, v
			return int(res[2].Stat.NumChildren), nil
		case err == nil, record.RefusedAt(err, 1, zk.ErrNodeExists):
			mine, err := l.mine(ctx, e, path)
			if err != nil {
				return 0, err
			}
			if mine {
				t.counted, t.asked = true, v
				return l.counted(ctx, e, v)
			}
		case record.RefusedAt(err, 0, zk.ErrNoNode):
			return 0, errNotClosed
		case record.RefusedAt(err, 1, zk.ErrNoNode): // removed by hand
			if err := node.MakeDir(ctx, e, l.counts(v.generation), l.door.ACL()); err != nil {
				return 0, err
			}
		case record.RefusedAt(err, 2, zk.ErrNoAuth) && !l.plain.Swap(true):
		default:
			return 0, err
		}
		if err := rest.Take(ctx, e); err != nil {
			return 0, err
		}
	}
}

// ask asks for the node, until the servers have answered.
func (l *Latch) ask(ctx context.Context, e *zkconn.Epoch, v latchView, t *tally, node string) (res []zk.MultiResponse, err error) {
	var flags int32
	if l.ephemeral {
		flags = zk.FlagEphemeral
	}
	ops := []any{
		&zk.CheckVersionRequest{Path: l.closed(v.generation), Version: -1},
		&zk.CreateRequest{Path: node, Data: l.door.Owner(), Acl: l.door.ACL(), Flags: flags},
		&zk.SetDataRequest{Path: l.counts(v.generation), Version: -1}, // tells how many there are
	}
	if l.plain.Load() {
		ops = ops[:2]
	}
	err = record.Insist(ctx, e, func() error {
		res, err = e.StartMulti(ops...).Wait(ctx, e)
		if zkconn.Unknown(err) || errors.Is(err, zkconn.ErrOver) {
			t.unsure, t.asked = true, v
		}
		return err
	})
	return res, err
}

// mine reports whether the node counts for this session. An ephemeral one of another session goes with its session, and
// nobody removes it before: a delete that is applied late would also remove the next node of that name, which is to stay.
func (l *Latch) mine(ctx context.Context, e *zkconn.Epoch, node string) (bool, error) {
	if !l.ephemeral {
		return true, nil
	}
	st, there, err := e.Exists(ctx, node)
	return there && st.EphemeralOwner == e.ID(), err
}

// counted is how many events have been counted.
func (l *Latch) counted(ctx context.Context, e *zkconn.Epoch, v latchView) (int, error) {
	dir, there, err := e.Exists(ctx, l.counts(v.generation))
	if err != nil || !there {
		return 0, err
	}
	return int(dir.NumChildren), nil
}

// open opens the latch; more than one may.
func (l *Latch) open(ctx context.Context, e *zkconn.Epoch, v latchView) error {
	if err := e.Delete(ctx, l.closed(v.generation)); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// openIfDone opens the latch if all events have been counted.
func (l *Latch) openIfDone(ctx context.Context, e *zkconn.Epoch, v latchView) error {
	n, err := l.counted(ctx, e, v)
	if err != nil || n < l.total {
		return err
	}
	return l.open(ctx, e, v)
}
