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
func (p *Ticket) Leave(grace time.Duration) {
	if p.gone.Load() {
		grace = 0
	}
	p.Forget()
	if p.maybeDuplicated {
		// A request that was applied twice left a twin, which only a listing shows.
		p.Epoch.Reap(zkconn.Orphan{Dir: p.queue.Dir, Prefix: protectedPrefix + p.Entry.UUID})
	}
	if grace > 0 && p.Epoch.Linked() && p.remove(grace) {
		return
	}
	p.Epoch.Reap(zkconn.Orphan{Dir: p.queue.Dir, Node: p.Node})
}

// Forget marks the ticket as given up, or lost.
func (p *Ticket) Forget() {
	p.gone.Store(true)
	p.DropProof()
	p.IgnoreLoss()
}

// remove deletes the node and reports whether the servers confirmed that it is
// gone within d. It is the short way, without the reaper, of a healthy connection.
func (p *Ticket) remove(d time.Duration) bool {
	call := p.Epoch.StartDelete(p.Node)
	node.Settle(p.Epoch, call.Done(), d)
	if !call.Answered() {
		return false
	}
	_, err := call.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}
