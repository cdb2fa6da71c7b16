package zkbarrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Enter returns when n parties have entered, this one among them. After an error the party is outside; if the
// last party came before its node was removed, the round opens for the others.
//
// After a lost session the party enters again; but if a round has opened that may have counted it, the error
// is zksync.ErrSessionExpired. It is zksync.ErrBroken if more than n came, and a lost answer leaves open
// whether this party is one of the n.
func (b *DoubleBarrier) Enter(ctx context.Context) error {
	if _, err := b.made().begin(false); err != nil {
		return b.at.Named("enter", err)
	}
	// enter removes the node of an Enter that failed before it makes a new one.
	s := &participant{node: b.leftover.node, epoch: b.leftover.epoch, leftover: true}
	there := ""
	err := b.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		err := b.enter(ctx, e, s)
		there = record.Glance(ctx, e, func(ctx context.Context) (string, error) {
			return b.present(ctx, e, "the round before is not over: %d of %d have not left")
		})
		return err
	})
	err = record.Saying(err, there)
	b.leftover = participant{}
	if err != nil {
		b.withdraw(s)
		b.leftover, s = *s, nil
	}
	b.end(s)
	return b.at.Named("enter", err)
}

// enter joins a round. When it fails, s has the node that may be left: of a lost session, or one that could not be
// removed at once.
func (b *DoubleBarrier) enter(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	if s.node != "" { // the old node must not count besides the next one
		if _, err := b.depart(ctx, e, s); err != nil {
			return err
		}
	}
	if s.before == 0 && s.round != 0 && !s.leftover {
		// The first such round counts: the others may have continued in that one without this party.
		s.before = s.round
	}
	if s.before == unknownRound {
		return errWithout
	}
	s.leftover = false
	return b.join(ctx, e, s)
}

// withdraw removes the node of an Enter that failed.
func (b *DoubleBarrier) withdraw(s *participant) {
	if s.node == "" || s.leftover { // the node of an earlier Enter is the reaper's already
		return
	}
	b.unwanted(s)
	done := b.remove(s)
	if s.round != 0 { // otherwise node.Make has waited already
		node.Settle(s.epoch, done, node.Grace)
	}
	select {
	case <-done:
		if s.epoch.Cause() == nil {
			s.node = ""
		}
	default:
	}
}

// errWithout is the error of an Enter when the round has opened, or may have opened, without this party.
var errWithout = fmt.Errorf("%w: the round went on without this party", zksync.ErrSessionExpired)

// join comes to a round, and to the next one if need be, until a round opens with s.
func (b *DoubleBarrier) join(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	turn := b.turn()
	defer turn.Leave()
	for pace := (node.Pace{Free: 1}); ; {
		err := b.arrive(ctx, e, s, turn)
		var full *node.Refused
		switch {
		// The party had come to a round in a session that was lost. Now that round gathers no more, or another one
		// gathers, or it has enough parties without this one. So it has opened without this party, or will.
		case s.before != 0 && (errors.As(err, &full) || err == nil && (s.round != s.before || s.count > b.n)):
			return errWithout
		case errors.As(err, &full) && !errors.Is(full.Err, zk.ErrNoNode): // we may not read what the servers check
			return full.Err
		case errors.As(err, &full):
			err = b.next(ctx, e, turn)
		case err == nil:
			err = b.gather(ctx, e, s, turn)
		}
		if !errors.Is(err, node.ErrAgain) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// arrive makes the party's node while a round gathers. While none gathers it fails with *node.Refused. The node has
// no sequence number, and all attempts use one name. So a request that arrives twice, or one that lingers in a server
// until another one has made the node, does not count as two parties.
func (b *DoubleBarrier) arrive(ctx context.Context, e *zkconn.Epoch, s *participant, turn *gate.Turn) error {
	// since is read before the request is sent: see mayHaveBeenOf.
	s.epoch, s.round, s.since, s.left, s.dead = e, 0, e.Seen(), false, false
	s.uuid, s.tries = node.NewUUID(), 0
	n, err := node.Make(ctx, e, node.Spec{
		Dir: b.parties(), Base: b.base(), ACL: b.at.ACL(), Flags: zk.FlagEphemeral, Data: b.at.Owner,
		UUID: s.uuid, KeepDuplicates: true,
		Name: func(uuid string) string {
			name := node.Prefix(uuid) + "-party"
			s.node = b.parties() + "/" + name
			return name
		},
		Before: func() []any {
			s.tries++
			return append([]any{&zk.CheckVersionRequest{Path: b.gathering(), Version: -1}}, turn.Check()...)
		},
	})
	var refused *node.Refused
	switch {
	case errors.As(err, &refused):
		b.unwanted(s)
		s.node = ""
		if refused.Index == 0 {
			return err
		}
		turn.Queue() // another party has the turn
		return cmp.Or(turn.Take(ctx, e), node.ErrAgain)
	case err != nil && !errors.Is(err, zk.ErrNodeExists): // this very request had made the node, and arrived twice
		return err
	case err != nil || n.Dir == nil:
		return b.look(ctx, e, s)
	}
	s.round, s.count, s.quit = n.Dir.Czxid, int(n.Dir.NumChildren), unspoken(n.Dir)
	return nil
}

// look finds out how many parties there are, if the answer to the arrival did not say.
func (b *DoubleBarrier) look(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	dir, there, err := e.Exists(ctx, b.parties())
	if err != nil || !there {
		return cmp.Or(err, node.ErrAgain)
	}
	s.round, s.count, s.quit = dir.Czxid, int(dir.NumChildren), unspoken(dir)
	later := 0
	if s.count > b.n { // some of them may have come after s
		if dir, later, err = b.rank(ctx, e, s); err != nil || s.count > b.n {
			return err
		}
	}
	// This is read after the count. So if the round still gathers now, it gathered when the parties were
	// counted, and none of the n had left by then.
	_, gathering, err := e.Exists(ctx, b.gathering())
	if err != nil || gathering {
		return err
	}
	// A Stat's Cversion is the number of children that were made and of those that were deleted, together. So half of
	// the sum with NumChildren is the number of parties that have come to this round.
	if came := (int(dir.Cversion)+int(dir.NumChildren))/2 - later; came > b.n {
		return errs.Broken("the barrier", "the round opened for %d parties, and %d may have come by then; this may not be one of them", b.n, came)
	}
	s.count = 0 // this party is one of the n, and need not open the round
	return nil
}

// rank sets s.count to the number of parties that are still there and came no later than s, at most
// n+1. later is the number of those that are still there and came after s. dir is the Stat of the
// directory at the listing. A party that had gone before the listing, or goes before it is asked about,
// may have come before s, and is in neither number.
func (b *DoubleBarrier) rank(ctx context.Context, e *zkconn.Epoch, s *participant) (dir *zk.Stat, later int, err error) {
	mine, in, err := e.Exists(ctx, s.node)
	if err != nil || !in {
		return nil, 0, cmp.Or(err, node.ErrAgain)
	}
	names, dir, err := e.Children(ctx, b.parties())
	s.count = 0
	for i := 0; i < len(names) && err == nil && s.count <= b.n; i++ { // to know that there are more than n is enough
		var st *zk.Stat
		st, in, err = e.Exists(ctx, b.parties()+"/"+names[i])
		if in && st.Czxid <= mine.Czxid {
			s.count++
		} else if in {
			later++
		}
	}
	return dir, later, err
}

// gather waits until the round opens. The nth party to come opens it; so does a later one, if the round has not
// opened yet. node.ErrAgain means that s has to come again.
func (b *DoubleBarrier) gather(ctx context.Context, e *zkconn.Epoch, s *participant, turn *gate.Turn) error {
	if s.count <= b.n {
		turn.Leave()
	}
	if s.count < b.n {
		return record.UntilGone(ctx, e, b.gathering(), 0, func() error { return b.stillThere(ctx, e, s) })
	}
	if err := b.open(ctx, e, s); err != nil || s.count == b.n {
		return err
	}
	if _, err := b.depart(ctx, e, s); err != nil { // there are n parties without this one
		return err
	}
	return b.next(ctx, e, turn)
}

// next waits until a round gathers, and returns node.ErrAgain then.
func (b *DoubleBarrier) next(ctx context.Context, e *zkconn.Epoch, turn *gate.Turn) error {
	turn.Refused()
	return cmp.Or(b.outside(ctx, e, turn), node.ErrAgain)
}

// stillThere is for a party that has had no event for long. Its node may have been removed externally; or the last party
// to come could not open the round, and this one opens it instead.
func (b *DoubleBarrier) stillThere(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	_, mine, err := e.Exists(ctx, s.node)
	if err != nil || !mine {
		return cmp.Or(err, node.ErrAgain)
	}
	dir, there, err := e.Exists(ctx, b.parties())
	if err != nil || !there || int(dir.NumChildren) < b.n {
		return err
	}
	s.quit = unspoken(dir)
	return b.open(ctx, e, s)
}

// outside waits until a round gathers. The turn is taken before the wait: no party must come between the end of a round
// and this one.
func (b *DoubleBarrier) outside(ctx context.Context, e *zkconn.Epoch, turn *gate.Turn) error {
	for last, pace := int64(0), (node.Pace{}); ; {
		if err := turn.Take(ctx, e); err != nil {
			return err
		}
		dir, open, err := b.learn(ctx, e)
		if err != nil || !open {
			return err
		}
		// The directory was the same before and after the last wait. So its round was open all the time, and yet its
		// mark was gone: the mark was removed externally.
		if dir.Czxid == last {
			_, err := node.RepeatTransaction(ctx, e, &zk.CreateRequest{Path: b.opened(last), Acl: b.at.ACL()})
			if err != nil && !record.Conflict(err) {
				return err
			}
		}
		if last != 0 && dir.Czxid != last {
			turn.Refused() // a round has gathered and opened meanwhile
		}
		last = dir.Czxid
		if dir.NumChildren == 0 { // for example, the round is of an earlier run, whose parties died
			if over, _, err := b.over(ctx, e, dir); err != nil || over {
				return err
			}
		}
		start := time.Now()
		err = record.UntilGone(ctx, e, b.opened(last), 0, func() error { return b.overIfEmpty(ctx, e, last) })
		if err == nil && time.Since(start) < record.LookPause { // what ended that wait may end the next at once
			err = pace.Rest(ctx, e)
		}
		if err != nil {
			return err
		}
	}
}
