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
	call := t.Epoch.StartDelete(t.Node)
	node.Settle(t.Epoch, call.Done(), d)
	if !call.Answered() {
		return false
	}
	_, err := call.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}
