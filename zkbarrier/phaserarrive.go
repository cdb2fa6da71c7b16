package zkbarrier

import (
	"context"
	"sync"

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
	if err := p.door.Misuse(); err != nil {
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
	err = p.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
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

// detach forgets the parties of other sessions than e. Where the session lives on, as that of a tapped
// connection may although it could not be proved to for a while, their nodes do, too, and go now.
func (p *Phaser) detach(e *zkconn.Epoch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.parties[:0]
	for _, x := range p.parties {
		if x.epoch == e {
			kept = append(kept, x)
			continue
		}
		p.lost = true
		if x.epoch.ID() == e.ID() {
			for _, at := range []int{x.at, after(x.at)} { // an arrival may be under way
				e.Reap(zkconn.Litter{Dir: p.arrivals(at), Node: p.arrivals(at) + "/" + x.name})
			}
		}
	}
	clear(p.parties[len(kept):])
	p.parties = kept
}

// forget drops a party.
func (p *Phaser) forget(x *party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, y := range p.parties {
		if x == y {
			p.parties = append(p.parties[:i], p.parties[i+1:]...)
			return
		}
	}
}
