package node

import (
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// abandon gives the reaper a node of which only the request is known. call is the request,
// and create is the index of the create in its transaction. The answer may still come. If
// it shows our node as the only child, there is one node, and the answer names it. If the request
// was not sent, there is no node. In all other cases the reaper must look for nodes. A refusal, too, may be
// that of a request which arrived twice, and was refused because of what it had changed the first time.
func (s *Spec) abandon(e *zkconn.Epoch, uuid string, call *zkconn.Call[[]zk.MultiResponse], create int) {
	e.AmbiguousCreate(s.Dir, Prefix(uuid), e.Connection())
	done := e.Reap(zkconn.Orphan{
		Dir: s.Dir, Prefix: Prefix(uuid), Pending: call.Done(),
		Outcome: func() (string, bool) {
			res, err := call.Result()
			if err == nil && len(res) == create+2 && res[create+1].Stat != nil && res[create+1].Stat.NumChildren == 1 {
				return res[create].String, false
			}
			// One of the other children may be a duplicate, from a request that was applied twice.
			return "", !errors.Is(err, zkconn.ErrNotSent)
		},
	})
	Settle(e, done, Grace)
}

// Abandon gives the reaper whatever the attempt with this uuid has made in dir, or may yet make.
func Abandon(e *zkconn.Epoch, dir, uuid string) {
	Settle(e, e.Reap(zkconn.Orphan{Dir: dir, Prefix: Prefix(uuid)}), Grace)
}

// Settle waits for done, at most for d, and not beyond the end of the
// epoch. Without a connection it does not wait: nothing can be done then.
func Settle(e *zkconn.Epoch, done <-chan struct{}, d time.Duration) {
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
