package zkbarrier

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// A round gathers, is open, and is over, when the next one gathers. Every change of that is one
// transaction, which the servers refuse when it comes too late or too early:
//
//	open:  the opener's own node is there; delete "gathering-<n>"; create "open-<round>"
//	close: delete and create "parties", so it was empty; create "gathering-<n>"; delete "open-<round>"
//
// A party comes with a node in "parties" while "gathering-<n>" is there, and never otherwise.

// doubleTerms is the data of the base node.
type doubleTerms struct {
	Parties int `json:"parties"`
}

func (b *DoubleBarrier) base() string { return b.at.Full(b.path) }

// parties has one node for each party. It is made anew for every round, so its czxid is the
// round's number, which comes with the answer to every arrival.
func (b *DoubleBarrier) parties() string { return b.base() + "/parties" }

// gathering is there as long as nobody may pass. It has n in its name, so that nobody
// has to read n before he comes.
func (b *DoubleBarrier) gathering() string { return fmt.Sprintf("%s/gathering-%d", b.base(), b.n) }

// opened is there from when a round opens until it is over. No two rounds share one, so whoever
// waits for its end cannot mistake the next round for his own.
func (b *DoubleBarrier) opened(round int64) string { return fmt.Sprintf("%s/open-%x", b.base(), round) }

// learn looks at the directory, and then whether a round is open: that of the directory, or a later one, if it
// has ended since. It makes what is missing.
func (b *DoubleBarrier) learn(ctx context.Context, e *zkconn.Epoch) (dir *zk.Stat, open bool, err error) {
	for pace := (node.Pace{Free: 2}); ; {
		if t, err := b.terms.Read(ctx, e); err != nil || t.New {
			return nil, false, err
		}
		dir, there, err := e.Exists(ctx, b.parties())
		if err != nil {
			return nil, false, err
		}
		_, gathering, err := e.Exists(ctx, b.gathering())
		if err != nil || gathering || there {
			return dir, !gathering, err
		}
		if err := node.MakeDir(ctx, e, b.parties(), b.at.ACL()); err != nil {
			return nil, false, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, false, err
		}
	}
}

// check refuses a base node that is not that of such a barrier.
func (b *DoubleBarrier) check(t doubleTerms, ours bool) error {
	switch {
	case !ours || t.Parties < 1:
		return fmt.Errorf("%w: the base node is not that of a double barrier; use a path of its own", zksync.ErrMisuse)
	case t.Parties != b.n:
		return fmt.Errorf("%w: the double barrier is one of %d parties, not %d; use the same number everywhere",
			zksync.ErrMisuse, t.Parties, b.n)
	}
	return nil
}

// open opens the round of s, if nobody has. record.ErrAgain means that the node of s is not there.
func (b *DoubleBarrier) open(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	ops := []any{
		&zk.CheckVersionRequest{Path: s.node, Version: -1}, // so this is its round
		&zk.DeleteRequest{Path: b.gathering(), Version: -1},
		&zk.CreateRequest{Path: b.opened(s.round), Acl: b.at.ACL()},
	}
	for {
		_, err := record.Transact(ctx, e, ops...)
		switch {
		case record.RefusedAt(err, 0, zk.ErrNoNode):
			return record.ErrAgain
		case record.RefusedAt(err, 1, zk.ErrNoNode):
			return nil
		case record.RefusedAt(err, 2, zk.ErrNodeExists): // made by hand
			ops = ops[:2]
		default:
			return err
		}
	}
}

// over ends an open round in which nobody is left; it reports whether it was this call that did.
func (b *DoubleBarrier) over(ctx context.Context, e *zkconn.Epoch, round int64) (bool, error) {
	_, err := record.Transact(ctx, e,
		&zk.DeleteRequest{Path: b.parties(), Version: -1},
		&zk.CreateRequest{Path: b.parties(), Acl: b.at.ACL()},
		&zk.CreateRequest{Path: b.gathering(), Acl: b.at.ACL()},
		&zk.DeleteRequest{Path: b.opened(round), Version: -1},
	)
	switch {
	case record.RefusedAt(err, 0, zk.ErrNotEmpty), record.RefusedAt(err, 0, zk.ErrNoNode),
		record.RefusedAt(err, 2, zk.ErrNodeExists), record.RefusedAt(err, 3, zk.ErrNoNode):
		return false, nil // not yet, or not any more
	}
	return err == nil, err
}

// overIfEmpty ends a round whose last parties died, or could not finish what they began. record.ErrGone means that it had ended
// before: a mark that is there all the same was made by hand, or for one that had been removed by hand.
func (b *DoubleBarrier) overIfEmpty(ctx context.Context, e *zkconn.Epoch, round int64) error {
	dir, there, err := e.Exists(ctx, b.parties())
	switch {
	case err != nil || !there:
		return err
	case dir.Czxid > round:
		return record.ErrGone
	case dir.Czxid < round || dir.NumChildren > 0: // a server that lags does not know of the round yet
		return nil
	}
	_, err = b.over(ctx, e, round)
	return err
}
