package zkphaser

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// locate finds out whether a party has arrived of which that is in doubt. parted tells that it
// had arrived by a call that left it registered, and that it is deregistered now.
func (p *Phaser) locate(ctx context.Context, e *zkconn.Epoch, x *party, leave bool) (moved, parted bool, err error) {
	// First where it comes from: it goes the other way only, perhaps between the two looks.
	here, err := p.isThere(ctx, e, p.node(x))
	if err != nil {
		return false, false, err
	}
	if here {
		x.unsure, x.leaving = false, false
		return false, false, nil
	}
	_, moved, err = e.Exists(ctx, p.nextNode(x))
	switch {
	case err != nil:
		return false, false, err
	case moved && (leave || x.leaving): // an earlier call may have sent the delete
		x.leaving = true
		if err = e.Delete(ctx, p.nextNode(x)); errors.Is(err, zk.ErrNoNode) {
			err = nil
		}
		return true, true, err
	case moved:
		return true, false, nil
	case x.leaving:
		return true, true, nil
	}
	t, err := p.learn(ctx, e)
	if err != nil || t.ended {
		return false, false, err
	}
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.forget(x) // somebody removed its node by hand
	return false, false, errDetached
}

// whyNot finds out why an arrival was refused; the zero turn means that it should be tried again.
func (p *Phaser) whyNot(ctx context.Context, e *zkconn.Epoch, x *party) (turn, error) {
	t, err := p.learnNow(ctx, e)
	switch {
	case err != nil:
		return t, err
	case t.ended:
		p.clear(e, t.phase)
		return t, nil
	case !before(t.phase, x.at):
		return turn{}, nil
	}
	// It has arrived. But the phase may be over without anybody having noticed: the last who had
	// to arrive has died, and nobody waits.
	_, next, err := p.stand(ctx, e, t.phase)
	switch {
	case err != nil:
		return t, err
	case next != nil && next.ended:
		return *next, nil
	case next != nil:
		return turn{}, nil
	}
	x.unsure = false
	return t, errArrived
}
