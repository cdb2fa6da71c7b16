package node

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// abandon gives the reaper a node of which only the request is known. create is
// the index of the create in the transaction.
func (s *Spec) abandon(e *zkconn.Epoch, uuid string, call *zkconn.Call[[]zk.MultiResponse], create int) {
	e.AmbiguousCreate(s.Dir, Prefix(uuid), e.Connection())
	done := e.Reap(zkconn.Orphan{
		Dir: s.Dir, Prefix: Prefix(uuid), Pending: call.Done(),
		Outcome: func() (string, bool) {
			res, err := call.Result()
			if err == nil && len(res) == create+2 && res[create+1].Stat != nil && res[create+1].Stat.NumChildren == 1 {
				return res[create].String, false
			}
			if err == nil {
				return "", true // with others there, one may be a duplicate: a request applied twice
			}
			return "", zkconn.Unknown(err)
		},
	})
	Settle(e, done, Grace)
}

// Abandon gives the reaper whatever the attempt with this uuid has made in dir, or will yet make.
func Abandon(e *zkconn.Epoch, dir, uuid string) {
	Settle(e, e.Reap(zkconn.Orphan{Dir: dir, Prefix: Prefix(uuid)}), Grace)
}

// Settle waits for done, at most for d, and not beyond the epoch. Without a
// connection there is nothing to wait for.
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
