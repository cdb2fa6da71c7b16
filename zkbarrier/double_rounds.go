package zkbarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// A round gathers, then it is open, then it is over, and the next one gathers. Each of these changes is one
// transaction, which the servers refuse if it comes too late or too early:
//
//	open:  the opener's own node is there; delete "gathering-<n>"; create "open-<round>"
//	close: delete and create "parties", so it was empty; create "gathering-<n>"; delete "open-<round>"
//
// A party makes its node in "parties" only while "gathering-<n>" exists: its transaction checks that.

// learn reads the directory, and after that whether a round is open. That is the round of the directory, or a later
// one if that round ended between the two reads. It makes what is missing.
func (b *DoubleBarrier) learn(ctx context.Context, e *zkconn.Epoch) (dir *zk.Stat, open bool, err error) {
	for pace := (node.Pace{Free: 2}); ; {
		if t, err := b.terms.ReadOrMake(ctx, e); err != nil || t.New {
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
		if err := pace.Rest(ctx, e); err != nil { // not after it is made: it is empty then, and may be removed
			return nil, false, err
		}
		// Its parents are not created: the base node, if it was removed, must get its terms again.
		_, err = node.RepeatTransaction(ctx, e, &zk.CreateRequest{Path: b.parties(), Acl: b.at.ACL()})
		if err != nil && !record.Conflict(err) {
			return nil, false, err
		}
	}
}

// open opens the round of s, unless another party has. node.ErrAgain means that the node of s is gone.
func (b *DoubleBarrier) open(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	ops := []any{
		&zk.CheckVersionRequest{Path: s.node, Version: -1}, // this node exists, so the round that gathers is the round of s
		&zk.DeleteRequest{Path: b.gathering(), Version: -1},
		&zk.CreateRequest{Path: b.opened(s.round), Data: openMark(s.quit), Acl: b.at.ACL()},
	}
	for {
		_, err := node.RepeatTransaction(ctx, e, ops...)
		switch {
		case record.RefusedAt(err, 0, zk.ErrNoNode):
			return node.ErrAgain
		case record.RefusedAt(err, 1, zk.ErrNoNode): // another party has opened it
			return nil
		case record.RefusedAt(err, 2, zk.ErrNodeExists): // another program made it
			ops = ops[:2]
		default:
			return err
		}
	}
}

// over ends the open round of dir, in which no party is left. It reports whether this call ended it. If parties have died
// inside, it writes that to the mark, and leaves it there; if not, it deletes the mark.
func (b *DoubleBarrier) over(ctx context.Context, e *zkconn.Epoch, dir *zk.Stat) (ended bool, died int, err error) {
	mark := b.opened(dir.Czxid)
	end := any(&zk.DeleteRequest{Path: mark, Version: -1})
	if unspoken(dir) > 0 {
		m, err := b.mark(ctx, e, dir.Czxid)
		if err != nil {
			return false, 0, err
		}
		if m.Died = unspoken(dir) - m.Quit; m.Died > 0 {
			died, end = m.Died, &zk.SetDataRequest{Path: mark, Data: record.Encode(m), Version: -1}
		}
	}
	_, err = node.RepeatTransaction(ctx, e,
		// The servers refuse the first deletion while a party is in the directory, and
		// the last operation if the round is not open.
		&zk.DeleteRequest{Path: b.parties(), Version: -1},
		&zk.CreateRequest{Path: b.parties(), Acl: b.at.ACL()},
		&zk.CreateRequest{Path: b.gathering(), Acl: b.at.ACL()},
		end,
	)
	if record.Conflict(err) {
		return false, 0, nil // parties are left, or another call has ended the round
	}
	if err == nil && died > 0 {
		b.forget(ctx, e)
	}
	return err == nil, died, err
}

// overIfEmpty ends a round whose last parties died, or did not finish the transaction that ends it. record.ErrGone
// means that the round has ended, also if its mark still exists.
func (b *DoubleBarrier) overIfEmpty(ctx context.Context, e *zkconn.Epoch, round int64) error {
	dir, there, err := e.Exists(ctx, b.parties())
	switch {
	case err != nil || !there:
		return err
	case dir.Czxid > round:
		return record.ErrGone
	case dir.Czxid < round || dir.NumChildren > 0: // a server that lags behind does not know of the round yet
		return nil
	}
	ended, _, err := b.over(ctx, e, dir)
	if err == nil && ended {
		err = record.ErrGone // its mark may stay
	}
	return err
}

// unspoken is how many nodes of parties have gone otherwise than by Leave. The transactions of an arrival and of a
// departure each write to the directory once. So every one of them counts in both versions, and the end of a
// session only in the version of the children.
func unspoken(dir *zk.Stat) int { return int(dir.Cversion - dir.Version) }

// roundMark is the data of the mark of a round. Without data no party of the round is missing.
type roundMark struct {
	// Quit is how many parties had gone without Leave when the round was complete: they are none of the n.
	Quit int `json:"quit"`
	// Died is how many parties have died inside, once the round is over.
	Died int `json:"died,omitempty"`
}

func openMark(quit int) []byte {
	if quit == 0 {
		return nil
	}
	return record.Encode(roundMark{Quit: quit})
}

// mark reads the mark of a round; it is zero if the round ended without a death.
func (b *DoubleBarrier) mark(ctx context.Context, e *zkconn.Epoch, round int64) (m roundMark, err error) {
	data, _, err := e.Get(ctx, b.opened(round))
	if errors.Is(err, zk.ErrNoNode) {
		return m, nil
	}
	_ = json.Unmarshal(data, &m) // another program made it, or no party is missing
	return m, err
}

// kept is how many marks of rounds with deaths are kept, for parties that have not heard of them yet.
const kept = 8

// forget removes the marks of earlier rounds with deaths, except the newest. What fails is left for the next one.
func (b *DoubleBarrier) forget(ctx context.Context, e *zkconn.Epoch) {
	names, _, _ := e.Children(ctx, b.base())
	var rounds []int64
	for _, name := range names {
		var round int64
		if _, err := fmt.Sscanf(name, "open-%x", &round); err == nil {
			rounds = append(rounds, round)
		}
	}
	slices.Sort(rounds)
	for _, round := range rounds[:max(len(rounds)-kept, 0)] {
		_ = e.Delete(ctx, b.opened(round))
	}
}
