package zkbarrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Leave returns when all parties of the round have left or died. Whatever it returns, this party leaves: ctx
// bounds only the wait for the others. After an error a second Leave waits again, and Enter begins the next
// round.
//
// If parties died inside, the error is a [BrokenError]. If this party's session ended before it could leave,
// the others may have continued too early: zksync.ErrSessionExpired.
func (b *DoubleBarrier) Leave(ctx context.Context) error {
	s, err := b.made().begin(true)
	if err != nil {
		return b.at.Named("leave", err)
	}
	there := ""
	err = b.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		err := b.leave(ctx, e, s)
		there = record.Glance(ctx, e, func(ctx context.Context) (string, error) { return b.present(ctx, e, "%d of %d have not left") })
		return err
	})
	err = record.Saying(err, there)
	if !s.left { // ctx ended first
		b.unwanted(s)
		node.Settle(s.epoch, b.remove(s), node.Grace)
		s.left = true
	}
	if err == nil || s.dead || errors.Is(err, zksync.ErrBroken) && !errors.Is(err, ctx.Err()) { // else that is the cause of ctx
		s = nil
	}
	b.end(s)
	return b.at.Named("leave", err)
}

// leave has the party leave, and waits for the others.
func (b *DoubleBarrier) leave(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	again := s.left // in an earlier call or session
	if !again {
		over, err := b.depart(ctx, e, s)
		switch {
		case s.dead:
		case err != nil:
			return err
		case over && s.unsure:
			return b.afterwards(ctx, e, s)
		case over:
			return b.mourn(s, s.died)
		}
	}
	if s.dead {
		return fmt.Errorf("%w while the party was in; the others may have left", zksync.ErrSessionExpired)
	}
	if again { // the round may be over, and its mark still there
		switch err := b.lookInside(ctx, e, s); {
		case errors.Is(err, record.ErrGone):
			return nil
		case err != nil:
			return err
		}
	}
	// The mark of a round in which parties died is not deleted, but changed: then lookInside returns the error.
	return record.UntilGone(ctx, e, b.opened(s.round), 0, func() error { return b.lookInside(ctx, e, s) })
}

// afterwards is the error of Leave for a party whose round is over.
func (b *DoubleBarrier) afterwards(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	m, err := b.mark(ctx, e, s.round)
	return cmp.Or(err, b.mourn(s, m.Died))
}

// mourn is the error of Leave when so many parties have died.
func (b *DoubleBarrier) mourn(s *participant, died int) error {
	if died <= 0 {
		return nil
	}
	return &BrokenError{Why: Died, Died: died, Parties: b.n, By: s.inside}
}

// lookInside is for a party that has left and waits for the others, when it has had no event for long, or the mark was
// written to. It learns which parties are still inside. If the round is over it returns the error of Leave, or
// record.ErrGone.
func (b *DoubleBarrier) lookInside(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	names, dir, err := e.Children(ctx, b.parties())
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrNoNode), err == nil && (len(names) == 0 || dir.Czxid != s.round):
		if err = b.overIfEmpty(ctx, e, s.round); errors.Is(err, record.ErrGone) {
			err = cmp.Or(b.afterwards(ctx, e, s), record.ErrGone)
		}
		return err
	case err != nil:
		return err
	}
	if slices.Sort(names); slices.Equal(names, s.names) {
		return nil
	}
	there, err := record.Call(ctx, e, b.parties(), names)
	switch {
	case errors.Is(err, zk.ErrNoAuth): // some of the parties have another access control list
		return nil
	case err == nil:
		s.names, s.inside = names, node.Owners[zksync.Owner](there.Owners)
		slices.SortFunc(s.inside, func(a, b zksync.Owner) int { return cmp.Compare(a.String(), b.String()) })
	}
	return err
}

// present names the parties in the round, for a party whose wait has ended. open is the text if the round is open.
func (b *DoubleBarrier) present(ctx context.Context, e *zkconn.Epoch, open string) (string, error) {
	_, gathers, err := e.Exists(ctx, b.gathering())
	if err != nil {
		return "", err
	}
	names, _, err := e.Children(ctx, b.parties())
	if err != nil {
		return "", err
	}
	there, err := record.Call(ctx, e, b.parties(), names)
	what := open
	if gathers {
		what = "%d of %d have entered"
	}
	return there.Say(fmt.Sprintf(what, len(names), b.n)), err
}

// departure is the transaction in which a party leaves.
func (b *DoubleBarrier) departure(s *participant) []any {
	return []any{
		&zk.DeleteRequest{Path: s.node, Version: -1},
		&zk.SetDataRequest{Path: b.parties(), Version: -1}, // its Stat has the number of parties left
	}
}

// remove has the node of s removed, by the transaction of a departure, through disconnects: if the node goes otherwise,
// the party counts as dead.
func (b *DoubleBarrier) remove(s *participant) (done <-chan struct{}) {
	e, at, ops, left := s.epoch, s.node, b.departure(s), make(chan struct{})
	if !e.Go(func() {
		defer close(left)
		_, _ = node.RepeatTransaction(context.Background(), e, ops...) // if the servers refuse it, the node goes without
	}) {
		close(left) // the session is being ended, and the node with it
	}
	return e.Reap(zkconn.Orphan{Dir: b.parties(), Pending: left, Outcome: func() (string, bool) { return at, false }})
}

// unwanted says that the node of s is not wanted any more. If there were several requests for the node, one of them
// got no answer and may yet be applied, although another one made the node.
func (b *DoubleBarrier) unwanted(s *participant) {
	if s.tries > 1 {
		s.epoch.AmbiguousCreate(b.parties(), node.Prefix(s.uuid), s.epoch.Connection())
	}
}

// depart removes the node of s, whether or not its session is the present one. The last party to leave ends the
// round. With over no wait for the end of the round is needed.
func (b *DoubleBarrier) depart(ctx context.Context, e *zkconn.Epoch, s *participant) (over bool, err error) {
	res, err := node.RepeatTransaction(ctx, e, b.departure(s)...)
	gone := record.RefusedAt(err, 0, zk.ErrNoNode)
	if err != nil && !gone {
		return false, err
	}
	s.left = true
	b.unwanted(s)
	// In the node's own session only this party removes the node. So if it is gone there, an earlier copy of this
	// request removed it. In a later session the node had gone with its own session.
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
		// Not before mayHaveBeenOf has succeeded: after an error the next call must
		// find out again what became of the node.
		s.node = ""
		// There is no directory, or one of a later round, so the round of this party is over.
		if !there || s.round != dir.Czxid && (s.round != 0 || gone) {
			s.unsure = true
			return true, nil
		}
	}
	s.node, s.round = "", dir.Czxid // if the session was lost, the round may not have been known
	if dir.NumChildren > 0 {
		return false, nil
	}
	over, s.died, err = b.over(ctx, e, dir)
	return over, err
}

// unknownRound is the round of a party that may have been counted in a round that is over.
const unknownRound = -1

// mayHaveBeenOf returns the round to which a party may have belonged whose request was never answered and whose node, if
// it was made, is gone with its session. dir is the present directory. If that existed before the request was sent, it is
// the round of dir. So it is if the directory was made together with the base node, for the first round of all; a party
// that had just connected knows of no transaction before its own. Otherwise another round has ended since, and the party
// may have been counted in it.
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
