package zksync

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/enter"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// yield gives the hold of l up and makes seat in the same transaction: whoever is granted
// next finds it there. It returns the epoch in which that was done; or an error, and the
// lease under which the lock is held all the same, if it is.
//
// The lease ends before the request is sent, because the servers may grant to others
// before the answer is here. A refusal therefore cannot bring it back: kept is another
// grant of the same place, with the next token.
//
// Goroutines of this process that wait queue anew, rather than have the place handed on:
// its node is what the transaction removes.
func (c *cohort) yield(ctx context.Context, l *Lease, seat door.Seat) (e *zkconn.Epoch, kept *Lease, err error) {
	if ctx.Err() != nil {
		if l.Err() == nil {
			kept = l
		}
		return nil, kept, contextError(ctx)
	}
	if !l.p.e.Valid() || l.p.gone.Load() && l.Err() == nil {
		l.finish(ErrLost)
	}
	if !l.finish(ErrReleased) {
		if err := l.Err(); err == ErrReleased {
			return nil, nil, err
		}
		c.unlockLost(l)
		return nil, nil, l.Err()
	}
	open := c.q.s.within(func() {
		bounded, cancel := c.q.s.bounded(ctx)
		defer cancel()
		e, kept, err = c.trade(bounded, l, seat)
	})
	if !open {
		return nil, nil, ErrClosed
	}
	if err != nil && c.q.s.ctx.Err() != nil {
		err = ErrClosed
	}
	return e, kept, err
}

// trade is the part of yield after the lease has ended.
func (c *cohort) trade(ctx context.Context, l *Lease, seat door.Seat) (*zkconn.Epoch, *Lease, error) {
	p := l.p
	p.turning.Store(true) // the removal of the node is no loss
	sent, err := p.swapFor(ctx, seat)
	switch {
	case err == nil:
		c.given(l)
		p.forget()
		return p.e, nil, nil
	case errors.Is(err, errGone), errors.Is(err, zkconn.ErrOver):
		c.given(l)
		p.leave(0)
		p.e.Reap(zkconn.Litter{Dir: seat.Dir, Node: seat.Node})
		return nil, nil, ErrLost
	case !sent && c.q.s.ctx.Err() == nil:
		p.turning.Store(false)
		kept := c.regrant(l)
		if kept == nil {
			return nil, nil, ErrLost
		}
		return nil, kept, c.q.failure(ctx, err)
	}
	// Nobody knows whether it was applied. Both nodes go.
	c.given(l)
	p.e.Doubt(seat.Dir, strings.TrimPrefix(seat.Node, seat.Dir+"/"), p.e.Connection())
	p.e.Reap(zkconn.Litter{Dir: seat.Dir, Node: seat.Node})
	p.leave(0)
	return nil, nil, c.q.failure(ctx, err)
}

// swapFor puts the seat into the place of the lock's own node. After a lost reply it looks:
// the seat's name is known, so asking again is harmless. sent is whether a request may have
// been, or may yet be, applied although there is an error.
func (p *place) swapFor(ctx context.Context, seat door.Seat) (sent bool, err error) {
	ops := []any{
		&zk.DeleteRequest{Path: p.node, Version: -1},
		&zk.CreateRequest{Path: seat.Node, Data: seat.Data, Acl: seat.ACL, Flags: zk.FlagEphemeral},
	}
	for {
		if err := p.e.Await(ctx); err != nil {
			return sent, err
		}
		call := p.e.StartMulti(ops...)
		_, err := call.Wait(ctx, p.e)
		var refused *zkconn.TxnError
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
			// Applied before, or somebody deleted the node.
			st, there, err := p.e.Exists(ctx, seat.Node)
			if err == nil && (!there || st.EphemeralOwner != p.e.ID()) {
				err = errGone
			}
			return true, err
		case errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, zk.ErrNoNode):
			if err := enter.MakeDir(ctx, p.e, seat.Dir, seat.ACL); err != nil {
				return sent, err
			}
		case zkconn.Unknown(err):
			sent = true
			if err := enter.Sleep(ctx, p.e, lookAgain); err != nil {
				return sent, err
			}
		case errors.Is(err, zkconn.ErrNotSent):
		case errors.As(err, &refused):
			return sent, refused.Err
		default:
			return true, err // ctx or the epoch ended first
		}
	}
}

// given notes that nobody here holds, nor has the place, any more.
func (c *cohort) given(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == l.p {
		c.place = nil
		c.stopIdle()
	}
	if c.hold == l {
		c.hold = nil
	}
	c.advance()
}

// regrant holds the place of l, which has ended, again: with the next token. It returns nil
// if the place was lost meanwhile.
func (c *cohort) regrant(l *Lease) *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place != l.p || c.hold != l || l.p.gone.Load() {
		if c.hold == l {
			c.hold = nil
			c.advance()
		}
		return nil
	}
	if c.unsettled(l) {
		c.hold = nil
		c.giveUp()
		c.advance()
		return nil
	}
	c.passes++
	kept := newLease(l.ctx, c, l.p, c.passes, l.mirror)
	if !c.q.s.remember(kept) {
		c.hold = nil
		c.giveUp()
		return nil
	}
	kept.boundBy(c.set.maxHold)
	c.hold = kept
	return kept
}
