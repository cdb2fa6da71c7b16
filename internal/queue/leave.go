package queue

import (
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// ending is why a ticket ends. A ticket ends once, and the first reason counts. Whatever it is, nothing may be granted on the
// ticket any more, and the ticket lets go of all that it has: the proof, the watch for its loss, and the node by which its holder
// is asked to give it up. The table says what else must be removed.
type ending uint8

const (
	// released: its holder gave it up, or the one who waited for it did.
	released ending = iota
	// lost: its hold was not released. Its session has ended, its node was removed, or its bound has passed.
	lost
	// replaced: a transaction of ours has removed the node, and the mark with it. Or there never was a node.
	replaced
)

// endings says what each of them has removed: the node of the ticket, and the mark of its hold (see mark.go).
var endings = [...]struct{ node, mark bool }{
	released: {node: true, mark: true},
	lost:     {node: true, mark: false}, // so that the next grant waits
	replaced: {node: false, mark: false},
}

// Unawaited is given to Leave in place of a time: Leave sends the request, and does not wait for the answer.
const Unawaited time.Duration = -1

// Leave gives the ticket up. The reaper of the epoch removes the node: it tries until the servers confirm that
// the node is gone. Leave waits for that at most for grace, and not at all if the ticket is over already.
func (t *Ticket) Leave(grace time.Duration) { t.end(released, grace) }

// LeaveLost is Leave for a hold that was not released. With a Delay its mark stays.
func (t *Ticket) LeaveLost(grace time.Duration) { t.end(lost, grace) }

// Forget ends a ticket whose node a transaction of ours has removed, or whose node was never made.
func (t *Ticket) Forget() { t.end(replaced, 0) }

func (t *Ticket) end(why ending, grace time.Duration) {
	// Before the request: its event must find the ticket given up, or it would be taken for a loss.
	if t.gone.Swap(true) {
		grace = 0
	}
	if t.ended.Swap(true) {
		return
	}
	defer t.tellRemoved()
	t.dropProof()
	t.IgnoreLoss()
	mark := t.claim.mark.Swap(nil)
	defer mark.settle()
	now := grace != 0 && t.Epoch.Linked()
	t.dropRequest(now)
	if !endings[why].node {
		return
	}
	if !endings[why].mark {
		mark.settle()
		mark = nil
	}
	if t.unlisted {
		// A request that was applied twice has left a duplicate.
		// Only a listing shows it, so the reaper looks for it.
		t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Prefix: node.Prefix(t.Entry.UUID)})
	}
	left := zkconn.Orphan{Dir: t.queue.Dir, Node: t.Node, First: mark.at()}
	if now {
		// On a healthy connection this one request is all. The servers answer the requests of a session in order. So
		// what this process asks for later finds the node gone, even if nobody waits for the answer.
		answered, confirmed := t.remove(mark)
		node.Settle(t.Epoch, answered, grace)
		if confirmed() {
			return
		}
		left.Pending, left.Outcome = answered, outcome(t.Node, confirmed) // a slow answer is no reason to ask twice
	}
	t.Epoch.Reap(left)
}

// remove sends the request that deletes the node, and its mark. confirmed reports whether an answer has said that they are gone.
func (t *Ticket) remove(mark *ownMark) (answered <-chan struct{}, confirmed func() bool) {
	ops := t.removal(mark)
	if len(ops) == 1 {
		return confirmation(zkconn.Start(t.Epoch, zkconn.DeleteNode(t.Node)), zk.ErrNoNode)
	}
	gone := zk.ErrNoNode
	if mark != nil {
		gone = nil // the mark may be what was not there: then the reaper removes the node
	}
	return confirmation(t.Epoch.StartMulti(ops...), gone)
}

// outcome is the Outcome of an orphan, for a request that removes its node.
func outcome(node string, confirmed func() bool) func() (string, bool) {
	return func() (string, bool) {
		if confirmed() {
			return "", false
		}
		return node, false
	}
}

func confirmation[T any](c *zkconn.Call[T], gone error) (answered <-chan struct{}, confirmed func() bool) {
	return c.Done(), func() bool {
		if !c.Answered() {
			return false
		}
		_, err := c.Result()
		return err == nil || gone != nil && errors.Is(err, gone)
	}
}

// removal is how a transaction removes the node of a ticket that is given up: with the announcement, and with its mark.
func (t *Ticket) removal(mark *ownMark) []any {
	return append(append(t.announcement(), t.deletion()), mark.removal()...)
}

// announcement is what a transaction that gives the lock up does before it deletes the node. It tells the next in
// line that a holder has left. So only a ticket that was granted announces, and only if nothing of it stays: not in
// a downgrade. It is nil if the entry is not sealed, or if we may not write to it on this connection. Then, as
// when the reaper removes the node, the next in line lists.
func (t *Ticket) announcement() []any {
	granted := t.lossWatch.Load() != nil
	if !granted || !t.Entry.sealed() || t.sole && t.Entry.Kind == KindLock {
		return nil
	}
	if _, _, known := t.Epoch.Identity(); !known {
		return nil
	}
	return []any{&zk.SetDataRequest{Path: t.Node, Version: -1}}
}

func (t *Ticket) deletion() any { return &zk.DeleteRequest{Path: t.Node, Version: -1} }
