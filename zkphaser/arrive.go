package zkphaser

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// pick takes a party that may arrive, preferably one of which it is not known whether it has.
func (p *Phaser) pick() (*party, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var chosen *party
	for _, x := range p.parties {
		switch {
		case x.busy:
		case chosen == nil, x.unsure && !chosen.unsure, x.unsure == chosen.unsure && before(x.at, chosen.at):
			chosen = x
		}
	}
	switch {
	case chosen != nil:
		chosen.busy = true
		return chosen, nil
	case len(p.parties) > 0:
		return nil, errArrived
	case p.lost:
		return nil, errDetached
	}
	return nil, errNoParty
}

// arrive is all the forms of arrival.
func (p *Phaser) arrive(ctx context.Context, leave, await bool) (phase int, err error) {
	if err := p.at.Misuse(); err != nil {
		return -1, err
	}
	x, err := p.pick()
	if err != nil {
		return p.refuse(ctx, err)
	}
	release := sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		x.busy = false
	})
	defer release()
	t, arrived := turn{}, false
	err = p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if x.epoch != e {
			p.detach(e)
			return errDetached
		}
		var next *turn
		if t, next, arrived, err = p.arriveOnce(ctx, e, x, leave); err != nil || t.ended || !await {
			return err
		}
		if next != nil {
			t = *next
			return nil
		}
		release() // it may arrive at the next phase before this call has returned
		then, err := p.await(ctx, e, t.phase)
		if err == nil {
			t = then
		}
		return err
	})
	switch {
	case err != nil && !arrived:
		return -1, err
	case !await && ctx.Err() != nil: // what is left to do others do
		return t.number(), nil
	}
	return t.number(), err
}

// refuse is what an arrival without a party comes to: nothing if the phaser has terminated.
func (p *Phaser) refuse(ctx context.Context, reason error) (int, error) {
	t, err := p.look(ctx)
	if err == nil && t.ended {
		return t.number(), nil
	}
	if err == nil {
		err = reason
	}
	return -1, err
}

// detach forgets the parties of sessions before e; others may have registered in a later one while this call came here. On a
// tapped connection the session may live on, although it could not be proved to for a while, or have been another one already when
// they were registered, which is told late. Then their nodes live, too, and go now.
func (p *Phaser) detach(e *zkconn.Epoch) {
	p.mu.Lock()
	gone := p.drop(func(x *party) bool { return x.epoch.Number() < e.Number() })
	p.lost = p.lost || len(gone) > 0
	p.mu.Unlock()
	for _, x := range gone {
		p.remove(x)
	}
}

// forget drops a party.
func (p *Phaser) forget(x *party) {
	x.hook.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(func(y *party) bool { return x == y })
}

// drop forgets parties. p.mu is held.
func (p *Phaser) drop(which func(*party) bool) (dropped []*party) {
	p.parties = slices.DeleteFunc(p.parties, func(x *party) bool {
		if !which(x) {
			return false
		}
		close(x.gone)
		dropped = append(dropped, x)
		return true
	})
	return dropped
}

// own notes parties that were registered. When the session is closed, that of a tapped connection lives on,
// and their nodes with it: nobody will call detach, so they go then.
func (p *Phaser) own(e *zkconn.Epoch, some []*party) {
	for _, x := range some {
		x.hook = e.OnLost(func(cause error) {
			switch {
			case e.Ordered():
			case errors.Is(cause, zkconn.ErrClosed):
				p.remove(x)
			default: // it was lost, and may be closed before anybody calls
				record.AtClose(p.at, x.gone, func() { p.remove(x) })
			}
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parties, p.lost = append(p.parties, some...), false
}

// remove has the node of a party removed. An arrival may be under way: it finds nothing to move once the node is not
// where it comes from, so it goes there first.
func (p *Phaser) remove(x *party) (done <-chan struct{}) {
	p.mu.Lock()
	from, to := p.arrivals(x.at), p.arrivals(after(x.at))
	p.mu.Unlock()
	gone := x.epoch.Reap(zkconn.Orphan{Dir: from, Node: from + "/" + x.name})
	next := to + "/" + x.name
	return x.epoch.Reap(zkconn.Orphan{Dir: to, Node: next, Pending: gone, Outcome: func() (string, bool) { return next, false }})
}
