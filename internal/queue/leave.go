package queue

import (
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Leave gives the ticket up. The node's removal is the reaper's until it is
// confirmed; leave waits for that no longer than grace, and not if the ticket is lost.
func (t *Ticket) Leave(grace time.Duration) {
	if t.gone.Load() {
		grace = 0
	}
	t.Forget()
	if t.unlisted {
		// A request that was applied twice left a duplicate, which only a listing shows.
		t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Prefix: node.Prefix(t.Entry.UUID)})
	}
	if grace > 0 && t.Epoch.Linked() && t.remove(grace) {
		return
	}
	t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Node: t.Node})
}

// Forget marks the ticket as given up, or lost.
func (t *Ticket) Forget() {
	t.gone.Store(true)
	t.DropProof()
	t.IgnoreLoss()
}

// remove deletes the node and reports whether the servers confirmed that it is
// gone within d. It is the short way, without the reaper, of a healthy connection.
func (t *Ticket) remove(d time.Duration) bool {
	call := t.Epoch.StartDelete(t.Node)
	node.Settle(t.Epoch, call.Done(), d)
	if !call.Answered() {
		return false
	}
	_, err := call.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}
