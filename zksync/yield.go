package zksync

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
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
	if ctx.Err() != nil && l.Err() == nil {
		return nil, l, contextError(ctx)
	}
	if !l.p.e.Valid() || l.p.gone.Load() && l.Err() == nil {
		l.finish(ErrLost)
	}
	if !c.detach(l) {
		return nil, nil, c.overtaken(l)
	}
	if !l.finish(ErrReleased) { // what ended it found the place in nobody's books
		l.p.leave(0)
		return nil, nil, c.overtaken(l)
	}
	open := c.q.s.within(func() {
		bounded, cancel := c.q.s.bounded(ctx)
		defer cancel()
		e, kept, err = c.trade(bounded, l, seat)
	})
	if !open {
		c.given(l)
		l.p.leave(0)
		return nil, nil, ErrClosed
	}
	if err != nil && c.q.s.ctx.Err() != nil {
		err = ErrClosed
	}
	return e, kept, err
}

// overtaken is the error of one whose lease somebody else has ended, or is about to end.
func (c *cohort) overtaken(l *Lease) error {
	err := l.Err()
	switch {
	case err == nil:
		return ErrReleased // another Wait, at this very moment
	case err == ErrReleased && c.q.s.ctx.Err() != nil:
		return ErrClosed
	case err != ErrReleased:
		c.unlockLost(l)
	}
	return err
}

// detach takes the place of l out of the books, so that whatever becomes of l meanwhile hands it to
// nobody: its node is about to go. The hold stays there and keeps this process's others out.
//
// It comes before the lease ends. In the other order the session could be lost in between: then the
// place would be gone and the hold stay, without anybody to end it.
func (c *cohort) detach(l *Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != l || c.place != l.p {
		return false
	}
	c.place = nil
	c.stopIdle()
	return true
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
		p.turnBack()
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
	for made, pace := (node.Pace{Free: 1}), (node.Pace{}); ; {
		if err := p.e.Await(ctx); err != nil {
			return sent, err
		}
		call := p.e.StartMulti(ops...)
		if _, err := call.Wait(ctx, p.e); !answered(call) {
			return true, err // ctx or the epoch ended first
		}
		_, err := call.Result() // also if ctx ended at the very same time
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
			if err := node.MakeDir(ctx, p.e, seat.Dir, seat.ACL); err != nil {
				return sent, err
			}
			if err := made.Rest(ctx, p.e); err != nil {
				return sent, err
			}
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			sent = sent || zkconn.Unknown(err)
			if err := pace.Rest(ctx, p.e); err != nil {
				return sent, err
			}
		case errors.As(err, &refused):
			return sent, refused.Err
		default:
			return true, err
		}
	}
}

// given notes that nobody here holds any more.
func (c *cohort) given(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l {
		c.hold = nil
	}
	c.advance()
}

// regrant holds the place of l, which has ended, again: with the next token. It returns nil, and
// gives the place up, if it cannot be held again.
func (c *cohort) regrant(l *Lease) *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l && !l.p.gone.Load() && !c.unsettled(l) {
		kept := newLease(l.ctx, c, l.p, c.passes+1, l.mirror)
		if c.q.s.remember(kept) {
			kept.boundBy(c.set.maxHold)
			c.place, c.hold, c.passes = l.p, kept, c.passes+1
			return kept
		}
	}
	if c.hold == l {
		c.hold = nil
	}
	l.p.leave(0)
	c.advance()
	return nil
}
