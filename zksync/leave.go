package zksync

import (
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// leave gives the place up. The node's removal is the reaper's until it is
// confirmed; leave waits for that no longer than grace.
func (p *place) leave(grace time.Duration) {
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

// forget marks the place as given up.
func (p *place) forget() {
	p.gone.Store(true)
	if h := p.hook.Load(); h != nil {
		h.Stop()
	}
}

// remove deletes the node and reports whether the servers confirmed that it is
// gone within d. It is the short way, without the reaper, of a healthy connection.
func (p *place) remove(d time.Duration) bool {
	call := p.e.StartDelete(p.node)
	settle(p.e, call.Done(), d)
	if !answered(call) {
		return false
	}
	_, err := call.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}

// abandon leaves an entry of which only the request is known to the reaper.
func (q *queue) abandon(e *zkconn.Epoch, uuid string, call *zkconn.Call[[]zk.MultiResponse], create int) {
	done := e.Reap(zkconn.Litter{
		Dir: q.dir, Prefix: protectedPrefix + uuid, Pending: call.Done(),
		Outcome: func() (string, bool) {
			res, err := call.Result()
			if err == nil && len(res) == create+2 && res[create+1].Stat != nil && res[create+1].Stat.NumChildren == 1 {
				return res[create].String, false
			}
			if err == nil {
				return "", true // with others there, one may be a twin: see leave
			}
			return "", zkconn.Unknown(err)
		},
	})
	settle(e, done, cleanupGrace)
}

// abandonPrefix leaves an entry that may or may not exist to the reaper.
func (q *queue) abandonPrefix(e *zkconn.Epoch, uuid string) {
	settle(e, e.Reap(zkconn.Litter{Dir: q.dir, Prefix: protectedPrefix + uuid}), cleanupGrace)
}

// settle waits for done, at most for d, and not beyond the epoch. Without a
// connection there is nothing to wait for.
func settle(e *zkconn.Epoch, done <-chan struct{}, d time.Duration) {
	if d <= 0 || !e.Linked() {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-e.Over():
	}
}
