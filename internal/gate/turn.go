package gate

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Turn is a gate for records that must leave nothing when they are removed, or that older versions have made: it needs no node
// while no change is refused. A Turn serves one call, and is not safe for use by many goroutines.
//
// The gate is closed while its node, which is ephemeral, exists. Each change creates and deletes the node in its transaction, so the
// servers refuse the change while the gate is closed. Otherwise the rule and the argument are those of a [Gate]. A node that is left
// over is used by the next call that has the turn.
//
// Closing the gate at the first attempt would be right as well. But each call that finds it closed queues, and then finds others in
// the queue. So the gate would stay closed, and calls that do not disturb each other would wait for each other.
type Turn struct {
	Node string       // the gate, beside the record
	Line *queue.Queue // of the function Line

	refused int
	place   *queue.Ticket // nil outside the queue
	late    bool          // the change was refused in the turn, too
	closed  bool          // the gate, by this call
}

// Line makes q a queue for the turn, below base. Its directory and its entries are only created while the node at the path exists is there.
func Line(q *queue.Queue, base, exists string) *queue.Queue {
	q.Base, q.Check = base, func() []any { return []any{&zk.CheckVersionRequest{Path: exists, Version: -1}} }
	return q
}

// Check returns the operations that the servers refuse while another one has the turn. They are part of each change.
func (t *Turn) Check() []any {
	if t.Mine() {
		return nil // perhaps the gate is left over
	}
	return []any{&zk.CreateRequest{Path: t.Node, Acl: t.Line.ACL}, &zk.DeleteRequest{Path: t.Node, Version: -1}}
}

// IsOthers reports whether the servers refused this transaction because another one has the turn. Then Take must follow.
func (t *Turn) IsOthers(ops []any, err error) bool {
	var refused *zkconn.TxnError
	if !errors.As(err, &refused) || refused.Index < 0 || refused.Index >= len(ops) || !errors.Is(err, zk.ErrNodeExists) {
		return false
	}
	op, makes := ops[refused.Index].(*zk.CreateRequest)
	if !makes || op.Path != t.Node {
		return false
	}
	t.Queue()
	return true
}

// Queue says that the next Take must queue.
func (t *Turn) Queue() { t.refused = refusals }

// Refused says that the change was refused because the record had changed. If that was in the turn, the next Take closes the gate;
// also if this call had closed it before, since then the gate was opened.
func (t *Turn) Refused() { t.refused, t.late, t.closed = t.refused+1, t.place != nil, false }

// Mine reports whether this call has the turn.
func (t *Turn) Mine() bool { return t.place != nil && !t.place.Over() }

// Take waits for the turn, and closes the gate, if that is time. What the change depends on must be read after it. The caller must call Leave in
// the end.
func (t *Turn) Take(ctx context.Context, e *zkconn.Epoch) (err error) {
	for {
		if t.place != nil && (t.place.Over() || t.place.Epoch.Number() < e.Number()) {
			t.Leave()
		}
		if t.place == nil && t.refused >= refusals {
			t.place, err = t.Line.Obtain(ctx, nil)
		}
		switch {
		case errors.As(err, new(*node.Refused)):
			return nil // the record is gone
		case err != nil || t.place == nil:
			return err
		case t.place.Epoch != e:
			return zkconn.ErrOver // the call goes on in the next session, with its place
		case t.closed || !t.late:
			return nil
		}
		_, err = node.RepeatTransaction(ctx, e, t.inTurn(), &zk.CreateRequest{Path: t.Node, Acl: t.Line.ACL, Flags: zk.FlagEphemeral})
		switch {
		case err == nil, record.RefusedAt(err, 1, zk.ErrNodeExists):
			t.closed = true
			return nil
		case !record.RefusedAt(err, 0, zk.ErrNoNode):
			t.Leave()
			if record.Conflict(err) {
				err = nil // the record is gone
			}
			return err
		}
		t.Leave() // the entry was removed externally: queue again
	}
}

// inTurn is the operation that the servers refuse when this is not the turn of the call any more.
func (t *Turn) inTurn() any { return &zk.CheckVersionRequest{Path: t.place.Node, Version: -1} }

// Leave opens the gate, and ends the turn, if this call has it. It does not wait for the servers, but what the session asks for later
// finds it open.
func (t *Turn) Leave() {
	if t.place == nil {
		return
	}
	e := t.place.Epoch
	call := e.StartMulti(t.inTurn(), &zk.DeleteRequest{Path: t.Node, Version: -1})
	e.Reap(zkconn.Orphan{Dir: path.Dir(t.Node), Pending: call.Done(), Outcome: func() (string, bool) {
		if _, err := call.Result(); err == nil || record.RefusedAt(err, 1, zk.ErrNoNode) {
			return "", false
		}
		return t.Node, false // perhaps it is that of another one by then: see Turn
	}})
	t.place.Leave(queue.Unawaited)
	t.place, t.late, t.closed = nil, false, false
}

// Transact makes a transaction that does not depend on what was read, between the turns of others.
func (t *Turn) Transact(ctx context.Context, e *zkconn.Epoch, ops ...any) ([]zk.MultiResponse, error) {
	defer t.Leave()
	for {
		if err := t.Take(ctx, e); err != nil {
			return nil, err
		}
		all := slices.Concat(ops, t.Check())
		res, err := node.RepeatTransaction(ctx, e, all...)
		if !t.IsOthers(all, err) {
			return res, err
		}
	}
}
