package zkbarrier

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// leave has the party leave and waits for the others.
func (b *DoubleBarrier) leave(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	if !s.left {
		over, err := b.depart(ctx, e, s)
		if !s.dead && (over || err != nil) {
			return err
		}
	}
	if s.dead {
		return fmt.Errorf("%w while the party was in; the others may have left", zksync.ErrSessionExpired)
	}
	return record.UntilGone(ctx, e, b.opened(s.round), 0, func() error { return b.overIfEmpty(ctx, e, s.round) })
}

// depart removes the node of s, in whichever session. Whoever goes last ends the round. over tells
// that nobody needs to wait for that.
func (b *DoubleBarrier) depart(ctx context.Context, e *zkconn.Epoch, s *participant) (over bool, err error) {
	res, err := record.Transact(ctx, e,
		&zk.DeleteRequest{Path: s.node, Version: -1},
		&zk.SetDataRequest{Path: b.parties(), Version: -1}) // tells who is left
	gone := record.RefusedAt(err, 0, zk.ErrNoNode)
	if err != nil && !gone {
		return false, err
	}
	s.left = true
	b.unwanted(s)
	// In the node's own session nobody else removes it: then it was this request, the last time.
	s.dead = gone && e.Number() != s.epoch.Number()
	var dir *zk.Stat
	if !gone && len(res) > 1 && res[1].Stat != nil {
		dir = res[1].Stat
	} else {
		there := false
		if dir, there, err = e.Exists(ctx, b.parties()); err != nil {
			return false, err
		}
		if there && gone && s.round == 0 && !s.leftover {
			if s.round, err = b.mayHaveBeenOf(ctx, e, s, dir); err != nil {
				return false, err
			}
		}
		s.node = "" // not before it is known what it has been: whoever does not know asks again
		if !there || s.round != dir.Czxid && (s.round != 0 || gone) {
			return true, nil
		}
	}
	s.node, s.round = "", dir.Czxid // in a lost session that may not have been known
	return b.last(ctx, e, dir)
}

// unknownRound is that of a party which may have been counted in a round that is over.
const unknownRound = -1

// mayHaveBeenOf is the round of a node whose creation was never answered and which is gone with its
// session. If the directory was there before it was asked for, then it is this one, if any. So it is if
// the directory was made together with the base node, for the first round of all; a party that had just
// connected knows of no transaction before its own. Otherwise there has been a round since, in which
// it may have been counted.
func (b *DoubleBarrier) mayHaveBeenOf(ctx context.Context, e *zkconn.Epoch, s *participant, dir *zk.Stat) (int64, error) {
	if dir.Czxid <= s.since {
		return dir.Czxid, nil
	}
	base, there, err := e.Exists(ctx, b.base())
	switch {
	case err != nil:
		return 0, err
	case there && base.Czxid == dir.Czxid:
		return dir.Czxid, nil
	}
	return unknownRound, nil
}

// last ends the round if dir, its directory, is empty.
func (b *DoubleBarrier) last(ctx context.Context, e *zkconn.Epoch, dir *zk.Stat) (over bool, err error) {
	if dir.NumChildren > 0 {
		return false, nil
	}
	return b.over(ctx, e, dir.Czxid)
}
