package queue

import (
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Leave gives the ticket up. The reaper of the epoch removes the node: it tries until the servers confirm that
// the node is gone. Leave waits for that at most for grace, and not at all if the ticket is over already.
func (t *Ticket) Leave(grace time.Duration) {
	if t.gone.Load() {
		grace = 0
	}
	// Before the request: its event must find the ticket given up, or it would be taken for a loss.
	t.Forget()
	if t.unlisted {
		// A request that was applied twice has left a duplicate.
		// Only a listing shows it, so the reaper looks for it.
		t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Prefix: node.Prefix(t.Entry.UUID)})
	}
	if grace > 0 && t.Epoch.Linked() && t.remove(grace) {
		return
	}
	t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Node: t.Node})
}

// Forget marks the ticket as over, and ends its watch for a
// loss and its dependence on proof. The node is not removed.
func (t *Ticket) Forget() {
	t.gone.Store(true)
	t.DropProof()
	t.IgnoreLoss()
}

// remove deletes the node, and reports whether the servers confirmed within d that
// it is gone. On a healthy connection this takes one request, without the reaper.
func (t *Ticket) remove(d time.Duration) bool {
	if announced := t.announcement(); announced != nil {
		return confirmed(t.Epoch, t.Epoch.StartMulti(append(announced, t.deletion())...), d)
	}
	return confirmed(t.Epoch, t.Epoch.StartDelete(t.Node), d)
}

func confirmed[T any](e *zkconn.Epoch, removal *zkconn.Call[T], d time.Duration) bool {
	node.Settle(e, removal.Done(), d)
	if !removal.Answered() {
		return false
	}
	_, err := removal.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}

// announcement is what a transaction that gives the lock up does before it deletes the node. It tells the next in
// line that a holder has left. So only a ticket that was granted announces, and only if nothing of it stays: not in
// a downgrade. It is nil if the entry is not sealed, or if we may not write to it on this connection. Then, as
// when the reaper removes the node, the next in line lists.
func (t *Ticket) announcement() []any {
	granted := t.lossWatch.Load() != nil
	if !granted || !t.Entry.sealed() {
		return nil
	}
	if _, known := t.Epoch.Identity(); !known {
		return nil
	}
	return []any{&zk.SetDataRequest{Path: t.Node, Version: -1}}
}

func (t *Ticket) deletion() any { return &zk.DeleteRequest{Path: t.Node, Version: -1} }
