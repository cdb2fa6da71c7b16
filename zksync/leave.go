package zksync

import (
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// leave gives the place up. The node's removal is the reaper's until it is
// confirmed; leave waits for that no longer than grace, and not if the place is lost.
func (p *place) leave(grace time.Duration) {
	if p.gone.Load() {
		grace = 0
	}
	p.forget()
	if p.unseen {
		// A request that was applied twice left a twin, which only a listing shows.
		p.e.Reap(zkconn.Litter{Dir: p.q.dir, Prefix: protectedPrefix + p.self.uuid})
	}
	if grace > 0 && p.e.Linked() && p.remove(grace) {
		return
	}
	p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.node})
}

// forget marks the place as given up, or lost.
func (p *place) forget() {
	p.gone.Store(true)
	p.unsustain()
	p.unguard()
}

// remove deletes the node and reports whether the servers confirmed that it is
// gone within d. It is the short way, without the reaper, of a healthy connection.
func (p *place) remove(d time.Duration) bool {
	call := p.e.StartDelete(p.node)
	node.Settle(p.e, call.Done(), d)
	select {
	case <-call.Done():
	default:
		return false
	}
	_, err := call.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}
