package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Downgrade turns a write lease into a read lease, in one transaction: it makes a read
// node with the write node's own sequence number and removes the write node. So no
// writer who queues behind gets in between; other readers do, as far as no writer is
// ahead of them. The idea, and the layout, are those of Curator's
// InterProcessReadWriteLock, which does it in two requests.
//
// The new lease keeps the write node's zxid in its token, with the next Seq: the read
// node is created late, and its own zxid would be greater than that of writers who
// queue behind it and will be granted after it.
//
// While it is not known whether the transaction was applied, readers may be granted
// elsewhere, so l is not Valid. If ctx ends before it is known, everything is given up: then
// the caller holds neither. After any other error the write lease is what it was.
func (r *readers) Downgrade(ctx context.Context, l *Lease) (*Lease, error) {
	c := r.write
	if l == nil || l.b != books(c) || l.nested != nil {
		return nil, fmt.Errorf("%w: a lease to downgrade that is not a write lease of this lock", ErrMisuse)
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx)
	}
	p := l.p
	token := Token{Zxid: l.token.Zxid, Seq: l.token.Seq + 1}
	if exhausted(p.self.seq) {
		// There the creation zxid orders the queue, and the read node's would put it
		// behind writers that wait. So the write node stays: others read a little later.
		return r.takeOver(ctx, c, l, p, token)
	}
	self := p.self
	self.kind, self.uuid = KindRead, node.NewUUID()
	self.name = entryPrefix(KindRead, self.uuid, 1) + formatSequence(p.self.seq)
	read := newPlace(r.q, p.e, self, r.q.dir+"/"+self.name, false)
	read.undepend = read.e.Inherit()
	data := encodeNode(r.q.owner(), time.Now(), extras{token: token})
	// With the lease as well, so that a loss ends the call.
	bounded, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(l.ctx, func() { cancel(l.Err()) })()
	defer cancel(nil)
	// From here on the write node may be removed at any time, until a clear answer says that it
	// was not: nobody else of this process may have the place.
	p.doubts.Add(1)
	p.turning.Store(true)
	sent, err := read.swap(bounded, p, data, r.q.acl)
	if err == nil {
		return r.takeOver(ctx, c, l, read, token)
	}
	return nil, r.stay(ctx, l, read, sent, err)
}

// stay ends a downgrade that failed. sent is whether it may have been, or may yet be, applied.
func (r *readers) stay(ctx context.Context, l *Lease, read *place, sent bool, err error) error {
	p := l.p
	if sent {
		p.e.Doubt(r.q.dir, read.self.name, p.e.Connection())
		read.leave(0)
	} else {
		read.forget()
		p.doubts.Add(-1)
		p.turnBack()
	}
	switch {
	case r.q.s.ctx.Err() != nil: // Close has released the lease
		return ErrClosed
	case l.Err() != nil:
		return l.Err()
	case errors.Is(err, zkconn.ErrOver):
		l.finish(ErrLost)
		return ErrLost
	case errors.Is(err, errGone):
		p.turning.Store(false)
		p.vanished()
		return ErrLost
	case sent, ctx.Err() != nil: // also if nothing was sent: a caller whose time is up has one rule
		l.giveBack(cleanupGrace)
		return r.q.failure(ctx, err)
	}
	return r.q.failure(ctx, err)
}

// swap puts the node of p in the place of old's. After a lost reply it looks: both
// names are known, so asking again is harmless. sent is whether it may have been, or may
// yet be, applied although there is an error.
func (p *place) swap(ctx context.Context, old *place, data []byte, acl []zk.ACL) (sent bool, err error) {
	ops := []any{
		&zk.CreateRequest{Path: p.node, Data: data, Acl: acl, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: old.node, Version: -1}, // announced: see place.believe
		&zk.DeleteRequest{Path: old.node, Version: -1},
	}
	for pace := (node.Pace{}); ; {
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
		case err == nil, errors.Is(err, zk.ErrNodeExists): // applied before; the name is ours alone
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return true, errGone // the write node was deleted: so was the right to read
		case zkconn.Unknown(err):
			sent = true
		case errors.Is(err, zkconn.ErrNotSent):
		case errors.As(err, &refused):
			return sent, refused.Err
		default:
			return sent, err
		}
		if err := pace.Rest(ctx, p.e); err != nil {
			return sent, err
		}
	}
}

// takeOver enters the place that l has been turned into into the books of the readers,
// before l ends.
func (r *readers) takeOver(ctx context.Context, c *cohort, l *Lease, p *place, token Token) (*Lease, error) {
	p.self.czxid = token.Zxid
	w := &waiter{ctx: ctx, mirror: l.mirror, ready: make(chan struct{})}
	b := &batch{holds: make(map[*Lease]struct{}), passes: token.Seq}
	c.mu.Lock()
	held := c.hold == l && c.place == l.p && !l.p.gone.Load()
	if held {
		l.p.unguard()
		c.place = nil
		c.stopIdle()
		if p != l.p {
			l.p.unsustain()
		}
	}
	c.mu.Unlock()
	if !held || !l.p.e.Valid() {
		p.leave(cleanupGrace)
		l.finish(ErrLost)
		c.unlockLost(l)
		return nil, l.Err()
	}
	r.mu.Lock()
	r.put(b, p)
	if !r.current.open() {
		r.current = b
	}
	r.grantTo(b, w)
	r.mu.Unlock()
	p.guard(r) // if the place has been lost by now, this very call tells the new lease
	l.finish(ErrReleased)
	c.mu.Lock()
	if c.hold == l {
		c.hold = nil
	}
	c.advance()
	c.mu.Unlock()
	if w.err != nil {
		p.leave(cleanupGrace)
	}
	return w.lease, w.err
}
